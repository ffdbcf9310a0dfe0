package history

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

func dialMemcached(p Ports, limit time.Duration) (Wire, error) {
	conn, err := Dial(p.Memcached)
	if err != nil {
		return nil, err
	}
	return &memcachedWire{conn: conn, in: bufio.NewReader(conn), limit: limit}, nil
}

func (w *memcachedWire) Close() { _ = w.conn.Close() }

// can: a cas goes by the unique number of the latest get, which asked for the same key.
func (w *memcachedWire) Can(v Verb) bool { return v != Incr && v != Append }

func (w *memcachedWire) Ask(c Call) Reply {
	_ = w.conn.SetDeadline(time.Now().Add(w.limit))
	var req string
	switch c.Verb {
	case Get:
		req = fmt.Sprintf("gets %s\r\n", c.Key)
	case Set, Add:
		req = fmt.Sprintf("%s %s 0 0 %d\r\n%s\r\n", c.Verb, c.Key, len(c.Value), c.Value)
	case Remove:
		req = fmt.Sprintf("delete %s\r\n", c.Key)
	case Cas:
		if c.Old != w.old || c.Old == "" {
			return Reply{Certainty: Refused} // there is no unique number to send
		}
		req = fmt.Sprintf("cas %s 0 0 %d %s\r\n%s\r\n", c.Key, len(c.Value), w.uniq, c.Value)
	case Bump:
		req = fmt.Sprintf("incr %s %d\r\n", c.Key, c.By)
	}
	if _, err := io.WriteString(w.conn, req); err != nil {
		return Reply{}
	}
	line, err := w.in.ReadString('\n')
	if err != nil {
		return Reply{}
	}
	line = strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(line, "VALUE "):
		return w.value(line)
	case line == "END", line == "NOT_FOUND", line == "NOT_STORED", line == "EXISTS":
		return Reply{Certainty: Done}
	case line == "STORED", line == "DELETED":
		return Reply{Certainty: Done, OK: true}
	case c.Verb == Bump && line[0] >= '0' && line[0] <= '9':
		return Reply{Certainty: Done, OK: true, Value: line}
	}
	return failed(line)
}

func (w *memcachedWire) value(head string) Reply {
	var key, unique string
	var flags, size int
	if _, err := fmt.Sscanf(head, "VALUE %s %d %d %s", &key, &flags, &size, &unique); err != nil || size > 1<<20 {
		return Reply{}
	}
	text := make([]byte, size+len("\r\nEND\r\n"))
	if _, err := io.ReadFull(w.in, text); err != nil {
		return Reply{}
	}
	value := string(text[:size])
	w.old, w.uniq = value, unique
	return Reply{Certainty: Done, OK: true, Value: Number(value)}
}
