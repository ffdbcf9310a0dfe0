// Package tlsport lets the ports of the server speak TLS, and plaintext beside it while clients are being changed over.
//
//	g := tlsport.NewGuard(tlsport.Options{Files: files})
//	defer g.Close()
//	l = g.Listen(l)
//
// A connection that comes in is a *Conn. What serves it calls Open first, in the goroutine of the connection: the handshake, with a time
// limit, never in the loop that accepts. Read does it as well for those who do not know, such as net/http.
//
// Whether a client speaks TLS its first byte tells: a handshake begins with 0x16, which begins no request of any protocol here.
package tlsport
