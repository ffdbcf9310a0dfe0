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

// tuneOurs takes the parameters that only our clients send. only tells that the call has none of the original's: then the master stays what
// it is.
func (s *Session) tuneOurs() (only bool, err error) {
	readOnly, guards := s.in.Get("readonly")
	primary, claims := s.in.Get("primary")
	if guards {
		err = s.tuneReadOnly(readOnly)
	}
	if claims && err == nil {
		err = s.tunePrimary(primary)
	}
	if err != nil || !guards && !claims {
		return false, err
	}
	for _, name := range []string{"host", "port", "ts", "iv"} {
		if _, given := s.in.Get(name); given {
			return false, nil
		}
	}
	return true, nil
}

// tuneReadOnly sets whether this server refuses updates of its clients. When it has answered that it does, none is acknowledged any more: whoever
// has received all of the log may take over. A server that was started to refuse them may also be told so without an RTS file that works.
func (s *Session) tuneReadOnly(text []byte) error {
	if s.h.opts.Follower == nil && !s.h.opts.Catalog.Guarded() {
		return errNoRTS
	}
	on, err := strconv.ParseBool(string(text))
	if err != nil {
		return errInvalidParameters
	}
	if err := s.h.opts.Catalog.SetGuarded(on); err != nil {
		return err
	}
	s.h.opts.Logger.Info(fmt.Sprintf("updates of clients are refused from now on: %t", on))
	return nil
}

// tunePrimary makes this server the primary of the services, by force if need be. One ceases to be it by another becoming it.
func (s *Session) tunePrimary(text []byte) error {
	if s.h.opts.Claim == nil {
		return errNoServices
	}
	force := string(text) == "force"
	if on, err := strconv.ParseBool(string(text)); !force && (err != nil || !on) {
		return errInvalidParameters
	}
	return s.h.opts.Claim(force)
}
