package gather

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// failure remembers why a call of the engine had no answer, for whoever looks after the server:
// that the engine does not answer says nothing about a certificate that nobody trusts.
type failure struct{ last atomic.Pointer[failed] }

type failed struct {
	err error
	at  time.Time
}

// note notes why a call had no answer. That its time has ended, or its caller has left, does not
// say why. Of several hosts, others may have said why.
func (f *failure) note(err error) {
	for cause := err; cause != nil; cause = errors.Unwrap(cause) { // nil behind several errors too
		if cause == context.DeadlineExceeded || cause == context.Canceled {
			return
		}
	}
	f.last.Store(&failed{err, time.Now()})
}

// since returns why the last call behind a moment had no answer, nil if nothing is known.
func (f *failure) since(from time.Time) error {
	if last := f.last.Load(); last != nil && last.at.After(from) {
		return last.err
	}
	return nil
}
