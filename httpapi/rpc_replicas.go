package httpapi

import (
	"fmt"
	"strconv"
	"time"
)

// Replicas lists the followers of the server: one row each, its name a number that grows, its value fields NAME=VALUE with blanks between
// them.
type Replicas interface {
	Rows(now time.Time) (names, values []string)
}

// rpcReplicas lists the followers (our own).
func rpcReplicas(s *Session) error {
	if s.h.opts.Catalog.Log() == nil || s.h.opts.Replicas == nil {
		return errNoLog
	}
	names, values := s.h.opts.Replicas.Rows(s.h.opts.Now())
	for i := range names {
		s.outText(names[i], values[i])
	}
	return nil
}

// tuneReadOnly takes the parameter that only our clients send: whether this server refuses updates of its clients. only tells that the call
// has none of the original's parameters: then the master stays what it is.
func (s *Session) tuneReadOnly() (only bool, err error) {
	text, ok := s.in.Get("readonly")
	if !ok {
		return false, nil
	}
	on, err := strconv.ParseBool(string(text))
	if err != nil {
		return false, errInvalidParameters
	}
	s.h.opts.Catalog.SetGuarded(on)
	s.h.opts.Logger.Info(fmt.Sprintf("updates of clients are refused from now on: %t", on))
	for _, name := range []string{"host", "port", "ts", "iv"} {
		if _, given := s.in.Get(name); given {
			return false, nil
		}
	}
	return true, nil
}
