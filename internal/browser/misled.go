package browser

import "fmt"

// IsHello reports whether p is the beginning of a client's first message of TLS. It asks for more
// than IsHandshake: a record of a handshake that holds a client hello.
func IsHello(p []byte) bool {
	const kind, clientHello = 5, 1 // behind the type of the record, its version and length
	return IsHandshake(p) && len(p) > kind && p[kind] == clientHello
}

// Misled is for a connection that begins with an HTTP request or a TLS handshake, see
// IsRequestStart, at a port that speaks neither: the reply to an HTTP request, empty for TLS, and
// what the log says. speaks is what the port speaks.
//
// A page that has made a browser send the request may read the reply. It says no more than the page
// knows when the connection ends without one.
func Misled(head []byte, speaks string) (reply []byte, line string) {
	if IsHandshake(head) {
		return nil, fmt.Sprintf("speaks TLS: this port speaks %s without TLS: start the server with -tls-cert and -tls-key, "+
			"or connect without TLS", speaks)
	}
	why := fmt.Sprintf("this port speaks %s, not HTTP: the server has HTTP on the port of its option -port", speaks)
	return fmt.Appendf(nil, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s\n", len(why)+1, why),
		"sends an HTTP request: " + why
}
