//go:build !linux

package netio

import (
	"syscall"
	"time"
)

// LimitSilence does nothing: these systems give up a connection after a time of their own.
func LimitSilence(syscall.Conn, time.Duration) {}
