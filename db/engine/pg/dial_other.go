//go:build !linux

package pg

import (
	"net"
	"syscall"
)

// What the system has beside keep-alive is left out here.

func control(string, string, syscall.RawConn) error { return nil }

func unsent(net.Conn) int { return 0 }
