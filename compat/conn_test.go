package compat

import (
	"errors"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	answerLimit  = 20 * time.Second       // for an answer, beyond its recorded time; an idle client is left after 30
	eofLimit     = 15 * time.Second       // for the server to close a connection
	surplusLimit = 50 * time.Millisecond  // for bytes behind an answer
	silenceLimit = 300 * time.Millisecond // for bytes where none are expected
)

var bodyLength = regexp.MustCompile(`(?im)^content-length: *(\d+)`)

// replayConn is a client's connection.
type replayConn struct {
	net.Conn
	buf  []byte
	eof  bool
	sent string // latest bytes sent since the last answer

	unwatched bool // nobody has looked yet whether something came behind the latest answer
}

func dial(addr string) (*replayConn, error) {
	c, err := net.DialTimeout("tcp4", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &replayConn{Conn: c}, nil
}

// send writes bytes, in pieces if split is positive. A server that has closed the connection is no
// error here.
func (c *replayConn) send(p string, split int, gap time.Duration) {
	if split <= 0 {
		_, _ = c.Write([]byte(p))
		return
	}
	for len(p) > 0 {
		n := min(split, len(p))
		if _, err := c.Write([]byte(p[:n])); err != nil {
			return
		}
		p = p[n:]
		time.Sleep(gap) //lint:sleep the recorded client paused here
	}
}

// fill waits for more bytes, until deadline, and reports false when there will be none.
func (c *replayConn) fill(deadline time.Time) bool {
	if c.eof {
		return false
	}
	_ = c.SetReadDeadline(deadline)
	var p [64 << 10]byte
	n, err := c.Read(p[:])
	c.buf = append(c.buf, p[:n]...)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.eof = true // a reset too
	}
	return n > 0 || c.eof
}

// receive returns the bytes that the step expects, and all bytes that have come with them. With
// silence it also returns the bytes that come within a short time afterwards.
func (c *replayConn) receive(s *goldenStep, silence bool) string {
	deadline := time.Now().Add(answerLimit + time.Duration(s.TookMS)*time.Millisecond)
	if n := s.responses(); n > 0 {
		c.awaitResponses(n, strings.HasPrefix(c.sent, "HEAD "), deadline)
	} else {
		want := wantLength(string(*s.Recv))
		for len(c.buf) < want && c.fill(deadline) {
		}
	}
	var surplus time.Duration
	switch {
	case s.EOF:
		surplus = eofLimit
	case *s.Recv == "":
		surplus = silenceLimit
	case silence:
		surplus = surplusLimit
	}
	for deadline := time.Now().Add(surplus); c.fill(deadline); {
	}
	got := string(c.buf)
	c.buf, c.sent = nil, ""
	return got
}

// awaitResponses waits until n whole responses are in the buffer. With head these are responses to
// HEAD, without bodies.
func (c *replayConn) awaitResponses(n int, head bool, deadline time.Time) {
	at := 0
	for range n {
		for {
			if length, ok := responseLength(c.buf[at:], head); ok {
				at += length
				break
			}
			if !c.fill(deadline) {
				return
			}
		}
	}
}

// responseLength is the length of the response at the beginning of p, if it is whole.
func responseLength(p []byte, head bool) (n int, ok bool) {
	end := strings.Index(string(p), "\r\n\r\n")
	if end < 0 {
		return 0, false
	}
	n = end + 4
	if m := bodyLength.FindSubmatch(p[:end]); m != nil && !head {
		body, err := strconv.Atoi(string(m[1]))
		if err != nil {
			return 0, false
		}
		n += body
	}
	return n, len(p) >= n
}

// shutWrite ends sending; the client still reads.
func (c *replayConn) shutWrite() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}
