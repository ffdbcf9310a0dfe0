package engine

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
)

// commits looks into a connection with PostgreSQL for statements that make a group. When the answer
// of one comes to its end, the group has been committed.
type commits struct {
	mu      sync.Mutex
	begun   bool // the message without a type, with which a client begins, is over
	pending []byte
	makes   map[string]bool // prepared statements that make a group
	waits   bool            // one of them was executed
	tail    []byte          // of the answers
}

// asked looks at what the client sends.
func (c *commits) asked(b []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, b...)
	if !c.begun {
		if len(c.pending) < 4 || len(c.pending) < int(binary.BigEndian.Uint32(c.pending)) {
			return true
		}
		c.pending = c.pending[binary.BigEndian.Uint32(c.pending):]
		c.begun, c.makes = true, map[string]bool{}
	}
	for len(c.pending) >= 5 {
		size := 1 + int(binary.BigEndian.Uint32(c.pending[1:]))
		if len(c.pending) < size {
			break
		}
		body := c.pending[5:size]
		switch c.pending[0] {
		case 'P': // Parse: name, text
			name, text, _ := bytes.Cut(body, []byte{0})
			text, _, _ = bytes.Cut(text, []byte{0})
			c.makes[string(name)] = bytes.Contains(text, []byte("put_")) || bytes.Contains(text, []byte("mix_")) || bytes.Contains(text, []byte(" write("))
		case 'B': // Bind: portal, name
			_, rest, _ := bytes.Cut(body, []byte{0})
			name, _, _ := bytes.Cut(rest, []byte{0})
			c.waits = c.waits || c.makes[string(name)]
		}
		c.pending = c.pending[size:]
	}
	c.pending = slices.Clone(c.pending)
	return true
}

// answered reports whether b ends the answer of a statement that makes a group: PostgreSQL is ready
// for the next one, and no transaction is open.
func (c *commits) answered(b []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail = append(c.tail, b...)
	c.tail = slices.Clone(c.tail[max(0, len(c.tail)-6):])
	if !c.waits || !bytes.Equal(c.tail, []byte{'Z', 0, 0, 0, 5, 'I'}) {
		return false
	}
	c.waits = false
	return true
}
