package netio

import "crypto/tls"

// Secure reports whether the connection is encrypted by TLS.
func (c *Conn) Secure() bool {
	_, ok := c.net.(interface{ ConnectionState() tls.ConnectionState })
	return ok
}
