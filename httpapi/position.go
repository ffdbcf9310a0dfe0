package httpapi

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"gotycoon/internal/lenient"
	"gotycoon/ulog"
)

// Read your own writes on a follower.
//
// A client that has written to the master may read from a follower and miss its own update. So it
// asks for the update's position, and hands the position on with the read:
//
//	to the master     PUT /key      X-Kt-Position: ?      → X-Kt-Position: 1795400000000000000
//	to the follower   GET /key      X-Kt-Position: 1795400000000000000
//
// The follower serves the request when it has applied the master's log up to there. It waits for
// positionWait, or for so many seconds as stand behind the stamp; then it answers 503. Procedures
// have a row POSITION for the same.
//
// The position in a reply is the newest update of the log at that moment. It may be an update of
// another client, behind what the reply tells. Keeping the exact stamps would save the follower's
// clients microseconds, and cost every operation.

const (
	positionWait = 5 * time.Second
	positionMost = time.Minute
	positionAsk  = "?" // what asks for the position
)

// askPosition obeys a position that a request has brought along: it notes that the client wants the
// position of the reply, or waits until this server has reached a position.
func (s *Session) askPosition(text []byte) error {
	switch {
	case len(text) == 0:
		return nil
	case string(text) == positionAsk:
		if log := s.opts.Catalog.Log(); log != nil {
			s.reply.positioned = func() ulog.Stamp { return position(log) }
		} else if s.opts.Shared {
			s.reply.positioned = position0
		}
		return nil
	}
	stamp, seconds, _ := bytes.Cut(text, []byte(" "))
	want, err := strconv.ParseUint(string(stamp), 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %.64q is no position: X-Kt-Position or POSITION is ?, or STAMP [SECONDS]", errInvalidParameters, text)
	}
	if s.opts.Shared {
		if want > 0 {
			return fmt.Errorf("%w: the position %d is not of this server: %s, which all have the position 0", errInvalidParameters, want, inEngine)
		}
		return nil
	}
	limit := positionWait
	if len(seconds) > 0 {
		limit = time.Duration(min(max(lenient.Float(seconds), 0), positionMost.Seconds()) * float64(time.Second))
	}
	return s.awaitPosition(ulog.Stamp(want), limit)
}

// awaitPosition returns when everything up to a position is in the databases. Earlier replies leave
// before it waits.
func (s *Session) awaitPosition(want ulog.Stamp, limit time.Duration) error {
	if log := s.opts.Catalog.Log(); log != nil && log.Last() >= want && !s.follows() {
		return nil
	}
	if !s.follows() {
		at := ulog.Stamp(0)
		if log := s.opts.Catalog.Log(); log != nil {
			at = log.Last()
		}
		return &behindError{want: want, at: at}
	}
	if at, _ := s.opts.Follower.Position(); at >= want {
		return nil
	}
	if err := s.beginLong(); err != nil {
		return err
	}
	resume, err := s.conn.Park()
	if err != nil {
		s.out.lack = err
		return err
	}
	defer resume()
	at := s.opts.Follower.AwaitPosition(want, limit)
	s.conn.Meter.Restart()
	if at < want {
		return &behindError{want: want, at: at, waited: limit, follows: true}
	}
	return nil
}

// follows reports whether this server has a master.
func (s *Session) follows() bool {
	if s.opts.Follower == nil {
		return false
	}
	_, follows := s.opts.Follower.Position()
	return follows
}
