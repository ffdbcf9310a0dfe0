package client

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Clear removes all records.
func (db *DB) Clear(ctx context.Context) error {
	_, err := db.Call(ctx, "clear")
	return err
}

// Synchronize puts everything into the database's file, and with hard on the disk. command, where it is not empty, is run
// by the server afterwards; its failure is an error with the code Internal.
func (db *DB) Synchronize(ctx context.Context, hard bool, command string) error {
	var params []string
	if hard {
		params = append(params, "hard", "")
	}
	if command != "" {
		params = append(params, "command", command)
	}
	_, err := db.Call(ctx, "synchronize", params...)
	return err
}

// Vacuum removes expired records. It looks at the next step records where step is over 1, else at all.
func (db *DB) Vacuum(ctx context.Context, step int64) error {
	var params []string
	if step > 0 {
		params = []string{"step", strconv.FormatInt(step, 10)}
	}
	_, err := db.Call(ctx, "vacuum", params...)
	return err
}

// Status returns what the server tells about the database, "count" and "size" among it.
func (db *DB) Status(ctx context.Context) (Rows, error) { return db.Call(ctx, "status") }

// Report returns what the server tells about itself.
func (c *Client) Report(ctx context.Context) (Rows, error) { return c.DB("").Call(ctx, "report") }

// Void asks the server to do nothing: a test of the connection.
func (c *Client) Void(ctx context.Context) error {
	_, err := c.DB("").Call(ctx, "void")
	return err
}

// Echo returns its parameters, names and values in turn.
func (c *Client) Echo(ctx context.Context, params ...string) (Rows, error) {
	return c.DB("").Call(ctx, "echo", params...)
}

// LogFile is a file of the server's update log.
type LogFile struct {
	Path string // as the server knows it
	Size int64  // bytes
	Last uint64 // newest time stamp in it
}

// UlogList lists the files of the server's update log, oldest first.
func (c *Client) UlogList(ctx context.Context) ([]LogFile, error) {
	out, err := c.DB("").Call(ctx, "ulog_list")
	if err != nil {
		return nil, err
	}
	files := make([]LogFile, 0, len(out))
	for _, path := range out.sorted() {
		size, last, _ := strings.Cut(string(out[path]), ":")
		f := LogFile{Path: path}
		f.Size, _ = strconv.ParseInt(size, 10, 64)  // 0 for what is no number
		f.Last, _ = strconv.ParseUint(last, 10, 64) // likewise
		files = append(files, f)
	}
	return files, nil
}

// UlogRemove removes the files of the server's update log in which nothing is newer than the time stamp, 0 meaning now. The
// newest file stays in any case.
func (c *Client) UlogRemove(ctx context.Context, upTo uint64) error {
	var params []string
	if upTo > 0 {
		params = []string{"ts", strconv.FormatUint(upTo, 10)}
	}
	_, err := c.DB("").Call(ctx, "ulog_remove", params...)
	return err
}

// Master is where a server replicates from.
type Master struct {
	Host     string        // empty: from nowhere
	Port     int           // 0: 1978
	TS       string        // time stamp to begin after, or "now"; empty: where the server is
	Copy     bool          // replace the server's databases by copies of the master's first
	Interval time.Duration // pause between two looks for updates; NoPause: none; 0: unchanged
}

// NoPause is the Interval of a server that replicates as fast as it can.
const NoPause time.Duration = -1

// TuneReplication changes the master that the server follows.
func (c *Client) TuneReplication(ctx context.Context, m Master) error {
	var params []string
	add := func(name, value string) { params = append(params, name, value) }
	if m.Host != "" {
		add("host", m.Host)
	}
	if m.Port != 0 {
		add("port", strconv.Itoa(m.Port))
	}
	if m.TS != "" {
		add("ts", m.TS)
	}
	if m.Copy {
		add("copy", "true")
	}
	if m.Interval != 0 {
		add("iv", formatFloat(float64(max(0, m.Interval))/float64(time.Millisecond)))
	}
	_, err := c.DB("").Call(ctx, "tune_replication", params...)
	return err
}

// SetReadOnly has a server that replicates refuse the updates of its clients, but not those of its master, or ends that.
func (c *Client) SetReadOnly(ctx context.Context, on bool) error {
	_, err := c.DB("").Call(ctx, "tune_replication", "readonly", strconv.FormatBool(on))
	return err
}

// BecomePrimary makes the server the one that changes quotas and gives out fencing tokens, among those that replicate each other. It returns when
// that is so. A server that may not have all of the present primary's refuses, unless it is forced.
func (c *Client) BecomePrimary(ctx context.Context, force bool) error {
	how := "true"
	if force {
		how = "force"
	}
	_, err := c.DB("").Call(ctx, "tune_replication", "primary", how)
	return err
}

// Replicas lists the servers and programs that follow the server's update log: for each the number of its connection, and fields
// NAME=VALUE with blanks between them.
func (c *Client) Replicas(ctx context.Context) (Rows, error) {
	return c.DB("").Call(ctx, "replicas")
}

// PlayScript calls a procedure of the server's script with params and returns what it gives.
func (db *DB) PlayScript(ctx context.Context, name string, params map[string][]byte) (Rows, error) {
	rows := append(db.rows("name", name), prefixed(params)...)
	out, err := db.call(ctx, "play_script", rows)
	return out.unprefixed(), err
}
