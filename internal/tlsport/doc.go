// Package tlsport lets the ports of the server speak TLS, and, if asked to, plaintext too while
// clients are being changed over.
//
//	g := tlsport.NewGuard(tlsport.Options{Files: files})
//	defer g.Close()
//	l = g.Listen(l)
//
// An accepted connection is a *Conn. Its user calls Open first, in the goroutine of the connection,
// never in the accept loop: Open does the handshake, with a time limit. Read calls Open for users
// that do not, such as net/http.
//
// The first byte shows whether a client speaks TLS: a handshake begins with 0x16, and no request of
// any protocol here does.
package tlsport
