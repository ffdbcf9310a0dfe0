package httpapi

import (
	"math"
	"time"

	"gotycoon/internal/lenient"
	"gotycoon/ulog"
)

// Follower is the server's replication from a master.
type Follower interface {
	// Tune changes the master; an empty host means none. from is the stamp behind which updates are fetched, interval what
	// each of them costs at least; both are left as they are where nil.
	Tune(host string, port int, from *ulog.Stamp, interval *time.Duration)
	// Recopy has all databases replaced by copies of those of the master that Tune names next, whatever they hold.
	Recopy()
	// Position returns the stamp in the master's log up to which everything is in the databases, and whether there is a master.
	Position() (at ulog.Stamp, following bool)
}

const masterPort = 1978 // of a call that names none

// rpcTuneReplication changes where the server replicates from.
func rpcTuneReplication(s *Session) error {
	if only, err := s.tuneOurs(); only || err != nil {
		return err
	}
	if s.h.opts.Follower == nil {
		return errNoRTS
	}
	host, _ := s.in.Get("host")
	port := s.intOr("port", masterPort)
	if port < 1 {
		port = masterPort
	}
	if copies, ok := s.in.Get("copy"); ok && string(copies) == "true" {
		s.h.opts.Follower.Recopy()
	}
	s.h.opts.Follower.Tune(string(untilNUL(host)), int(port), s.replicateFrom(), s.replicateInterval())
	return nil
}

// replicateFrom returns the stamp of the call, nil where it is to stay.
func (s *Session) replicateFrom() *ulog.Stamp {
	text, ok := s.in.Get("ts")
	if !ok {
		return nil
	}
	if string(text) == "now" {
		return new(ulog.StampAt(s.h.opts.Now()))
	}
	if n := lenient.Int(text); n >= 0 {
		return new(ulog.Stamp(n))
	}
	return nil
}

// replicateInterval returns the interval of the call, nil where it is to stay.
func (s *Session) replicateInterval() *time.Duration {
	text, ok := s.in.Get("iv")
	ms := lenient.Float(text)
	if !ok || !(ms >= 0) { // NaN too
		return nil
	}
	return new(time.Duration(math.Round(min(ms*float64(time.Millisecond), math.MaxInt64/2))))
}

// positionLimit returns the largest stamp that a hot backup may be given which begins now: what it will hold is complete up to the
// follower's position in the master's log. Without a master there is no limit.
func (h *Handler) positionLimit() ulog.Stamp {
	if h.opts.Follower == nil {
		return math.MaxUint64
	}
	at, following := h.opts.Follower.Position()
	if !following {
		return math.MaxUint64
	}
	return at
}
