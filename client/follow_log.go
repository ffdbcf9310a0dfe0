package client

import (
	"context"
	"errors"
	"iter"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"gotycoon/client/wire/frame"
)

// LogMessage is an update as a server's update log has it, or a heartbeat.
type LogMessage struct {
	TS        uint64
	Log       []byte // valid during one step of the iteration; empty: an update that is left out
	Heartbeat bool   // the server has sent all updates; Log is empty
}

// ErrNoLog means that the server has no update log, or does not let the client follow it.
var ErrNoLog = errors.New("the server keeps no update log, or does not let this client follow it")

func noLog() error { return &Error{Code: NotImplemented, Message: ErrNoLog.Error(), Err: ErrNoLog} }

// FollowLog is Follow for programs that read the log's own form and resume by themselves. It
// iterates without end over the updates after a time stamp: those of all servers but sid, or with
// white those of sid only. It ends with the connection, or when the loop ends.
func (c *Client) FollowLog(ctx context.Context, after uint64, sid uint16, white bool) iter.Seq2[LogMessage, error] {
	return func(yield func(LogMessage, error) bool) {
		cn, err := c.dialWithin(ctx)
		if err != nil {
			yield(LogMessage{}, err)
			return
		}
		defer cn.Close()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		quiet := c.watch(cancel)
		defer quiet.Stop()
		err = cn.during(ctx, func(cn *conn) error { return cn.follow(after, sid, white, quiet.around(yield)) })
		if err != nil {
			yield(LogMessage{}, err)
		}
	}
}

// dialWithin connects within Options.Timeout.
func (c *Client) dialWithin(ctx context.Context) (*conn, error) {
	ctx, cancel := c.opts.limit(ctx)
	defer cancel()
	return c.connect(ctx)
}

// silence is a timer for the time in which the server sends nothing.
type silence struct {
	*time.Timer
	limit time.Duration
}

// watch starts a silence timer, which calls cancel when the server has sent nothing for
// Options.Timeout.
func (c *Client) watch(cancel context.CancelCauseFunc) silence {
	limit := c.opts.Timeout
	if limit == 0 {
		limit = math.MaxInt64
	}
	return silence{time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) }), limit}
}

// around stops the timer while yield runs: the time that the caller needs is no silence of the
// server.
func (s silence) around(yield func(LogMessage, error) bool) func(LogMessage, error) bool {
	return func(u LogMessage, err error) bool {
		s.Stop()
		defer s.Reset(s.limit)
		return yield(u, err)
	}
}

// follow sends the request and passes the messages to yield, until yield returns false.
func (cn *conn) follow(after uint64, sid uint16, white bool, yield func(LogMessage, error) bool) error {
	f := frame.Follow{Flags: frame.Remaining, TS: after, SID: sid}
	if white {
		f.Flags |= frame.WhiteSID
	}
	cn.sent = true
	if _, err := cn.Write(frame.AppendFollow(nil, f)); err != nil {
		return networkError(err)
	}
	first, err := cn.in.ReadByte()
	if err != nil {
		return networkError(err)
	}
	if frame.Magic(first) != frame.Replication {
		return noLog()
	}
	for {
		m, err := readPart(cn, frame.DecodeMessage)
		if err != nil {
			return err
		}
		beat := m.Magic == frame.Heartbeat
		if beat {
			if _, err := cn.Write([]byte{byte(frame.Ack)}); err != nil {
				return networkError(err)
			}
		}
		if !yield(LogMessage{TS: m.TS, Log: m.Log, Heartbeat: beat}, nil) {
			return nil
		}
	}
}

// Reach says whether a program that has the updates up to some time stamp can follow a server's
// update log without a gap.
type Reach struct {
	LogID string // identity of the log; empty: the server is not gotycoon
	Gap   bool   // updates newer than the time stamp have been removed, or may have been

	// For a server that is not gotycoon: the numbers of the log's oldest file, and of the file
	// where the updates newer than the time stamp begin. While the oldest file is not newer than
	// the file of an earlier answer without a gap, nothing has been removed since.
	Oldest, File uint64
}

// UlogReach asks whether the server's update log still has all updates newer than a time stamp. An
// answer that comes while Follow is running is also true for all updates that Follow has not
// delivered yet. If the server does not know the question, UlogReach looks at the names of the
// log's files; then Gap is also true if a gap cannot be ruled out.
func (c *Client) UlogReach(ctx context.Context, after uint64) (Reach, error) {
	out, err := c.DB("").Call(ctx, "ulog_reach", "ts", strconv.FormatUint(after, 10))
	var refused *Error
	switch {
	case err == nil:
		return Reach{LogID: string(out["id"]), Gap: out.Int("gap") != 0}, nil
	case !errors.As(err, &refused) || refused.Code != NotImplemented:
		return Reach{}, err
	}
	files, err := c.UlogList(ctx)
	return reachOf(files, after), err
}

// reachOf judges by the names of the log's files, oldest first. Updates newer than after cannot
// have been removed if the first file of the log is there, or a file that ends at or before after.
func reachOf(files []LogFile, after uint64) Reach {
	r := Reach{Gap: len(files) > 0}
	for _, f := range files {
		number, err := strconv.ParseUint(strings.TrimSuffix(path.Base(f.Path), ".ulog"), 10, 64)
		if err != nil {
			continue
		}
		if r.Oldest == 0 {
			r.Oldest = number
		}
		r.File = number
		if number == 1 || f.Last <= after {
			r.Gap = false
		}
		if f.Last > after {
			break
		}
	}
	return r
}
