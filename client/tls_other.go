//go:build !unix

package client

import "net"

// belowTLS is the connection below TLS.
type belowTLS struct{ net.Conn }

func (c *secureConn) alive() bool { return true }
