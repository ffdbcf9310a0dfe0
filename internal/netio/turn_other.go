//go:build !linux

package netio

import (
	"errors"
	"os"
)

// newEvent: without an event, connections that never wait only yield to others.
func newEvent() (*os.File, error) { return nil, errors.ErrUnsupported }
