//go:build !unix

package client

import (
	"net"
)

// alive reports whether an idle connection is still open, for TLS only: on this system the next
// call finds out.
func alive(c net.Conn) bool {
	secure, ok := c.(*secureConn)
	return !ok || secure.alive()
}

// belowTLS is the connection below TLS.
type belowTLS struct{ net.Conn }

func (c *secureConn) alive() bool { return true }
