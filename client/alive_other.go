//go:build !unix

package client

import "net"

// alive would tell whether the server has left an idle connection open; here the next call finds out.
func alive(c net.Conn) bool {
	secure, ok := c.(*secureConn)
	return !ok || secure.alive()
}
