package memcache

import (
	"bufio"
	"fmt"
	"net"
	"strings"
)

// soakConn is a connection of the soak test for use outside of the test's goroutine. An error gives
// an empty reply.
type soakConn struct {
	net.Conn
	r *bufio.Reader
}

func newSoakConn(c net.Conn) *soakConn { return &soakConn{c, bufio.NewReader(c)} }

func (c *soakConn) say(format string, args ...any) { fmt.Fprintf(c, format, args...) }

func (c *soakConn) line() string {
	line, _ := c.r.ReadString('\n')
	return strings.TrimSuffix(line, "\r\n")
}

// request returns the first line of the reply.
func (c *soakConn) request(format string, args ...any) string {
	c.say(format, args...)
	return c.line()
}

// message fetches a message, "" when none has come.
func (c *soakConn) message(name int) string {
	if !strings.HasPrefix(c.request("get q%d\r\n", name), "VALUE") {
		return ""
	}
	text := c.line()
	c.line()
	return text
}
