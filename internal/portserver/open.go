package portserver

import "net"

// opener is a connection that has to be opened before it is served, with a handshake for example. What is served is what Open returns.
type opener interface{ Open() (net.Conn, error) }

func open(c net.Conn) (net.Conn, error) {
	if o, ok := c.(opener); ok {
		return o.Open()
	}
	return c, nil
}
