package portserver

import "net"

// opener is a connection that must be opened before it is served, for example by a handshake. Open
// returns the connection to serve.
type opener interface{ Open() (net.Conn, error) }

func open(c net.Conn) (net.Conn, error) {
	if o, ok := c.(opener); ok {
		return o.Open()
	}
	return c, nil
}
