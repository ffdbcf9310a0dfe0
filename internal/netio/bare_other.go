//go:build !linux

package netio

import "net"

// ListenBare returns l: on this system Go's poller watches all connections.
func ListenBare(l *net.TCPListener) net.Listener { return l }
