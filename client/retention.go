package client

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// LogHold is somebody who needs files of the server's update log.
type LogHold struct {
	Kind  string    // database, snapshot, copy, slave, away or hold
	Name  string    // of a hold (UlogHold); of a slave SID@HOST; empty: it has none
	What  string    // who it is, for people
	From  uint64    // updates newer than this time stamp are kept
	Files int       // files with such updates, without the newest file
	Bytes int64     // size of these files
	Since time.Time // when it began
	Until time.Time // when it ends by itself; zero: it does not
}

// UlogHold has the server keep the files of its update log that may have updates newer than a time
// stamp, under a name, for a time. The hold survives restarts of the server. A hold with the name
// is replaced. from 0 stands for the time stamp of that hold, or for the end of the log where there
// is none. UlogHold returns the time stamp, and whether updates newer than it are gone already, or
// may be; the hold is in place all the same.
func (c *Client) UlogHold(ctx context.Context, name string, from uint64, d time.Duration) (at uint64, gap bool, err error) {
	params := []string{"name", name, "ttl", strconv.FormatInt(int64(d/time.Second), 10)}
	if from > 0 {
		params = append(params, "ts", strconv.FormatUint(from, 10))
	}
	out, err := c.DB("").Call(ctx, "ulog_hold", params...)
	if err != nil {
		return 0, false, err
	}
	at, _ = strconv.ParseUint(string(out["ts"]), 10, 64) // 0 if it is no number
	return at, string(out["gap"]) != "0", nil
}

// UlogRelease ends a hold. The error has the code LogicalInconsistency when there is none with the
// name.
func (c *Client) UlogRelease(ctx context.Context, name string) error {
	_, err := c.DB("").Call(ctx, "ulog_release", "name", name)
	return err
}

// UlogHolds lists who needs files of the server's update log, the one that is furthest behind
// first.
func (c *Client) UlogHolds(ctx context.Context) ([]LogHold, error) {
	out, err := c.DB("").Call(ctx, "ulog_holds")
	if err != nil {
		return nil, err
	}
	holds := make([]LogHold, len(out))
	for i := range holds {
		holds[i] = parseHold(string(out[strconv.Itoa(i+1)]))
	}
	return holds, nil
}

// parseHold reads fields NAME=VALUE with blanks between them. The last one, what, may have blanks.
func parseHold(text string) (h LogHold) {
	text, h.What, _ = strings.Cut(text, " what=")
	for field := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(field, "=")
		n, _ := strconv.ParseInt(value, 10, 64) // 0 if it is no number
		switch name {
		case "kind":
			h.Kind = value
		case "name":
			h.Name = value
		case "from":
			h.From, _ = strconv.ParseUint(value, 10, 64)
		case "files":
			h.Files = int(n)
		case "bytes":
			h.Bytes = n
		case "since":
			h.Since = time.Unix(n, 0)
		case "until":
			h.Until = time.Unix(n, 0)
		}
	}
	return h
}
