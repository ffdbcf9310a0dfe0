//go:build !linux

package netio

import (
	"errors"
	"time"
)

// poller exists on Linux alone.
type poller struct{ kept, longest time.Duration }

func newPoller() (*poller, error) { return nil, errors.ErrUnsupported }

func (*poller) add(int) error                                      { return errors.ErrUnsupported }
func (*poller) remove(int)                                         {}
func (*poller) poll(bool, func(now time.Time) time.Duration) error { return errors.ErrUnsupported }
func (*poller) each(func(int, bool))                               {}
func (*poller) slept() bool                                        { return false }
func (*poller) close()                                             {}
