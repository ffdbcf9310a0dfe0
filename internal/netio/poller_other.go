//go:build !linux

package netio

import "errors"

// poller exists on Linux alone.
type poller struct{}

func newPoller() (*poller, error) { return nil, errors.ErrUnsupported }

func (*poller) add(int) error        { return errors.ErrUnsupported }
func (*poller) remove(int)           {}
func (*poller) poll(bool) error      { return errors.ErrUnsupported }
func (*poller) each(func(int, bool)) {}
func (*poller) slept() bool          { return false }
func (*poller) close()               {}
