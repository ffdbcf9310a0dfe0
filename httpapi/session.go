package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/internal/lenient"
)

// Session is the HTTP side of one connection. It belongs to the goroutine of the connection.
type Session struct {
	call       // what procedures see of the connection
	gate  gate // whether the client may do what it asks
	reply replyWriter
	peer  string // the client's address, for the log
	text  []byte // decoded path and query

	moving    bool       // the present request belongs to the primary
	rpc       bool       // the present request calls a procedure, and is no verb
	procedure *procedure // nil: there is no procedure of the name
	key       []byte     // of a verb
}

// waitForSignal waits for the signal of WAIT. Earlier replies leave first.
func (s *Session) waitForSignal(name []byte) error {
	if s.conn.Flush() != nil {
		return errBroken
	}
	resume, err := s.conn.Park()
	if err != nil {
		s.out.lack = err
		return err
	}
	defer resume()
	arrived := s.opts.Signals.Wait(string(name), s.in.waitTime())
	s.conn.Meter.Restart()
	if !arrived {
		s.mute = true
		return errTimedOut
	}
	return nil
}

// waitDefault is how long WAIT waits without a WAITTIME, and waitMost what a Duration holds with
// ease.
const (
	waitDefault = 30 * time.Second
	waitMost    = 100 * 365 * 24 * time.Hour
)

func (in *input) waitTime() time.Duration {
	text, _ := in.Get("WAITTIME")
	seconds := lenient.Float(text)
	switch {
	case !(seconds > 0): // NaN too
		return waitDefault
	case seconds >= waitMost.Seconds():
		return waitMost
	}
	return time.Duration(seconds * float64(time.Second))
}

// sendSignal sends the signal of SIGNAL and reports how many were waiting. A signal tells others
// what this call has done, as a reply does, so the call's updates must be safe before. An error is
// the log's, and nothing may be answered.
func (s *Session) sendSignal(name []byte) error {
	if unconfirmed, err := s.conn.Confirm(); err != nil {
		if unconfirmed {
			return err
		}
		return errBroken
	}
	woken := s.opts.Signals.Signal(string(name), s.in.Has("SIGNALBROAD"))
	s.out.addInt("SIGNALED", int64(woken))
	s.out.rows.Sort() // a procedure may have a row of that name
	return nil
}

// wantReplicas notes on how many followers the client wants what the reply tells. A number that
// cannot be reached makes the request fail, see replication.Quorum.
func (s *Session) wantReplicas(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	n := int(min(max(lenient.Int(text), 0), math.MaxInt32))
	if n > 0 && s.opts.Shared {
		return errNoFollowers
	}
	s.conn.Owed.Replicas = n
	return nil
}

// replyDenied answers a request for which the client has no right.
func (s *Session) replyDenied() int {
	s.reply.denial(s.gate.denied, s.rpc, s.req.KeepAlive)
	return s.gate.denied.Status()
}

// logFailure writes the line about a database error that was not expected.
func (s *Session) logFailure(status int, err error) {
	if status != statusInternal || dberr.Expected(err) {
		return
	}
	if e, ok := errors.AsType[*dberr.Error](err); ok {
		s.opts.Logger.Error("database error: " + e.Error())
	}
}

// awaitEnd is for a connection on which nobody can tell where the next request begins, so that the
// connection ends. First the client gets its reply and may send the rest of its request, up to the
// first line end or the time limit.
func (s *Session) awaitEnd() {
	for {
		rest := s.conn.Buffered()
		if bytes.IndexByte(rest, '\n') >= 0 {
			return
		}
		s.conn.Advance(len(rest))
		if s.conn.Fill() != nil {
			return
		}
	}
}

// Close ends the session, its cursors and its monitor.
func (s *Session) Close() {
	s.closeCursors()
	s.closeMonitor()
}

// requestLine returns the line of the request for the log, or "" when nobody reads it.
func (s *Session) requestLine() string {
	if s.opts.Meters.Sampling || !s.opts.Logger.Enabled(context.Background(), slog.LevelInfo) {
		return ""
	}
	return string(s.req.Line())
}

// logRequest writes the line that every parsed request gets.
func (s *Session) logRequest(line string, status int) {
	if line == "" || status == statusBroken {
		return
	}
	s.opts.Logger.Info(fmt.Sprintf("(%s): %s: %d", s.peer, line, status))
}
