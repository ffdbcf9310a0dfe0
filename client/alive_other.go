//go:build !unix

package client

import "net"

// alive would tell whether the server has left an idle connection open; here the next call finds out.
func alive(net.Conn) bool { return true }
