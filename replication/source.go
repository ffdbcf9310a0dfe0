package replication

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"gotycoon/binproto/frame"
	"gotycoon/internal/klog"
	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

const (
	// heartbeatEvery is the pause between two heartbeats. An update does not wait for its end.
	heartbeatEvery = 100 * time.Millisecond
	// fillerEvery is the number of consecutive updates not for the follower after which it is told how far they go.
	fillerEvery = 256
	// heartbeatLag is how far heartbeats stay behind the clock when there is nothing to send, as the original's do.
	heartbeatLag = time.Second
	// messageHead is the part of a log message that says whose it is: sid and dbid.
	messageHead = 4
	// flushAt is the size from which on collected messages are sent.
	flushAt = 64 << 10
)

// SourceOptions are the parts that a Source works with.
type SourceOptions struct {
	Log    *ulog.Log
	Done   <-chan struct{}  // closed when the server stops: connections end within a heartbeat
	Logger *slog.Logger     // nil means silent
	Now    func() time.Time // nil means time.Now
}

// Source feeds followers from an update log. Each has the goroutine of its connection, and reads the log's files at its own
// pace: one that stalls costs nobody else anything.
type Source struct {
	opts SourceOptions
}

// NewSource returns a source for the followers of a log.
func NewSource(o SourceOptions) *Source {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Source{opts: o}
}

// Serve answers a follower's request and streams to it until the connection or the server ends. The caller then sends
// what is in c.Out and closes the connection.
func (s *Source) Serve(c *netio.Conn, f frame.Follow) {
	r, err := s.opts.Log.NewReader(ulog.Stamp(f.TS))
	if err != nil {
		s.opts.Logger.Error("opening an update log reader failed: " + err.Error())
		c.Out = append(c.Out, byte(frame.Error))
		return
	}
	defer r.Close()
	s.system("a slave was connected: ts=%d sid=%d", f.TS, f.SID)
	if r.Gap() {
		s.opts.Logger.Error(fmt.Sprintf("the slave with sid=%d may miss updates: "+
			"files of the update log that held some newer than ts=%d have been removed", f.SID, f.TS))
	}
	c.Out = append(c.Out, byte(frame.Replication))
	st := stream{source: s, conn: c, reader: r, follow: f}
	if err := st.run(); err != nil && !errors.Is(err, errEnded) {
		s.opts.Logger.Error(fmt.Sprintf("replication to the slave with sid=%d: %v", f.SID, err))
	}
	s.system("a slave was disconnected: sid=%d", f.SID)
}

func (s *Source) system(format string, args ...any) {
	s.opts.Logger.Log(context.Background(), klog.LevelSystem, fmt.Sprintf(format, args...))
}

// errEnded ends a stream that nobody did anything wrong about: the follower or the server is gone.
var errEnded = errors.New("the connection has ended")

// stream is what one follower is being sent.
type stream struct {
	source   *Source
	conn     *netio.Conn
	reader   *ulog.Reader
	follow   frame.Follow
	last     ulog.Stamp // newest update read, sent or not
	filtered int        // consecutive updates not sent
}

// run alternates between what the log has and heartbeats. What a heartbeat says is found out before the log is read to its end:
// a follower that is told a stamp never asks for updates up to it again.
func (t *stream) run() error {
	for {
		settled := t.source.opts.Log.Settle(ulog.StampAt(t.source.opts.Now().Add(-heartbeatLag)))
		if err := t.send(); err != nil {
			return err
		}
		if err := t.heartbeat(max(t.last, settled)); err != nil {
			return err
		}
		if err := t.pause(); err != nil {
			return err
		}
	}
}

// send sends everything that the log has for the follower.
func (t *stream) send() error {
	for {
		e, err := t.reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		t.last = e.Stamp
		t.offer(e)
		if len(t.conn.Out) >= flushAt {
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
}

// offer puts an update into the stream if it is for the follower. A malformed one is sent as it is.
func (t *stream) offer(e ulog.Entry) {
	u, err := ulog.ParseMessage(e.Message)
	known := err == nil || len(e.Message) >= messageHead
	if known && (u.SID == t.follow.SID) == t.white() {
		t.put(frame.Message{Magic: frame.Replication, TS: uint64(e.Stamp), Log: e.Message})
		t.filtered = 0
		return
	}
	if t.filtered++; t.filtered == fillerEvery {
		t.put(frame.Message{Magic: frame.Replication, TS: uint64(e.Stamp)})
		t.filtered = 0
	}
}

func (t *stream) put(m frame.Message) { t.conn.Out = frame.AppendMessage(t.conn.Out, m) }

// white tells whether the follower wants the updates of one server only.
func (t *stream) white() bool { return t.follow.Flags&frame.WhiteSID != 0 }

// heartbeat tells the follower up to where it has everything, and reads its acknowledgement.
func (t *stream) heartbeat(at ulog.Stamp) error {
	t.put(frame.Message{Magic: frame.Heartbeat, TS: uint64(at)})
	if err := t.flush(); err != nil {
		return err
	}
	if len(t.conn.Buffered()) == 0 && t.conn.Fill() != nil {
		return errEnded
	}
	if t.conn.Buffered()[0] != byte(frame.Ack) {
		return errEnded
	}
	t.conn.Advance(1)
	return nil
}

func (t *stream) flush() error {
	if t.conn.Flush() != nil {
		return errEnded
	}
	return nil
}

// pause waits for the next update, but not longer than until the next heartbeat.
func (t *stream) pause() error {
	ctx, cancel := context.WithTimeout(context.Background(), heartbeatEvery)
	defer cancel()
	err := t.reader.Wait(ctx)
	select {
	case <-t.source.opts.Done:
		return errEnded
	default:
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
