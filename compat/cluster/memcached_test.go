package cluster

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// memcachedWire speaks memcached's text protocol.
type memcachedWire struct {
	conn  net.Conn
	in    *bufio.Reader
	limit time.Duration // of one request
	old   string        // value of the latest get, and its unique number
	uniq  string
}

func dialMemcached(m *member, limit time.Duration) (wire, error) {
	conn, err := dial(m.memc)
	if err != nil {
		return nil, err
	}
	return &memcachedWire{conn: conn, in: bufio.NewReader(conn), limit: limit}, nil
}

func (w *memcachedWire) close() { _ = w.conn.Close() }

// can: a cas goes by the unique number of the latest get, which asked for the same key.
func (w *memcachedWire) can(v verb) bool { return v != incr }

func (w *memcachedWire) ask(c call) reply {
	_ = w.conn.SetDeadline(time.Now().Add(w.limit))
	var req string
	switch c.verb {
	case get:
		req = fmt.Sprintf("gets %s\r\n", c.key)
	case set:
		req = fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", c.key, len(c.value), c.value)
	case remove:
		req = fmt.Sprintf("delete %s\r\n", c.key)
	case cas:
		if c.old != w.old || c.old == "" {
			return reply{certainty: refused} // there is no unique number to send
		}
		req = fmt.Sprintf("cas %s 0 0 %d %s\r\n%s\r\n", c.key, len(c.value), w.uniq, c.value)
	case bump:
		req = fmt.Sprintf("incr %s %d\r\n", c.key, c.by)
	}
	if _, err := io.WriteString(w.conn, req); err != nil {
		return doubtful
	}
	line, err := w.in.ReadString('\n')
	if err != nil {
		return doubtful
	}
	line = strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(line, "VALUE "):
		return w.value(line)
	case line == "END", line == "NOT_FOUND", line == "EXISTS":
		return reply{certainty: done}
	case line == "STORED", line == "DELETED":
		return reply{certainty: done, ok: true}
	case c.verb == bump && line[0] >= '0' && line[0] <= '9':
		return reply{certainty: done, ok: true, value: line}
	}
	return failed(line)
}

func (w *memcachedWire) value(head string) reply {
	var key, unique string
	var flags, size int
	if _, err := fmt.Sscanf(head, "VALUE %s %d %d %s", &key, &flags, &size, &unique); err != nil || size > 1<<20 {
		return doubtful
	}
	text := make([]byte, size+len("\r\nEND\r\n"))
	if _, err := io.ReadFull(w.in, text); err != nil {
		return doubtful
	}
	value := string(text[:size])
	w.old, w.uniq = value, unique
	return reply{certainty: done, ok: true, value: number(value)}
}
