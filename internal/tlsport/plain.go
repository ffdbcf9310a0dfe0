package tlsport

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

const (
	sniffSize   = 1024 // bytes of the beginning that are read
	refuseTime  = 500 * time.Millisecond
	refuseBytes = 64 << 10
	refusal     = "this port speaks TLS: use https\n"
)

// refuse answers a client without TLS in plain HTTP, if the client speaks HTTP.
func (c *Conn) refuse(head []byte) {
	c.guard.tellPlain(c.RemoteAddr())
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if !bytes.Contains(line, []byte(" HTTP/1.")) {
		return
	}
	limit := time.Now().Add(refuseTime)
	c.setLimit(limit)
	_ = c.socket.SetWriteDeadline(limit)
	_, err := fmt.Fprintf(c.socket, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
		len(refusal), refusal)
	if err == nil && c.socket.CloseWrite() == nil {
		// A close with unread bytes would destroy the reply.
		_, _ = io.CopyN(io.Discard, c.socket, refuseBytes)
	}
}
