//go:build !linux

package netio

import (
	"net"
	"time"
)

// LimitSilence does nothing: these systems give up a connection after a time of their own.
func LimitSilence(*net.TCPConn, time.Duration) {}
