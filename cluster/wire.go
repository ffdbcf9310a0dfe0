package cluster

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Messages between two members. Numbers are big-endian; the number behind a field's name is its
// size in bytes:
//
//	size 4 | kind 1 | id 8 | body (size − 9)
//
// A greeting is the first message in each direction, with the id 0 (greeting.go). An elector's
// message has the id 0 and is answered by nobody. A call is answered by a reply or a
// failure with the same id. The body of a call is a JSON object with the name of the method and its
// argument, that of a reply the result as JSON, that of a failure a text. A mistake is the failure
// of an order that an operator has to give in another way.

type kind byte

const (
	kindElection kind = 1
	kindCall     kind = 2
	kindReply    kind = 3
	kindFailure  kind = 4
	kindMistake  kind = 5
	kindGreeting kind = 6
)

const (
	headSize = 4 + 1 + 8
	// maxFrame is far above the largest message, a state with all its members and appointments.
	maxFrame = 4 << 20
)

var errFrame = errors.New("a message between members has an impossible size")

// message is one message, in either direction.
type message struct {
	kind kind
	id   uint64
	body []byte
}

// call is the body of a call.
type call struct {
	Method string          `json:"method"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// readMessage reads the next message. Its body is a slice of its own.
func readMessage(r *bufio.Reader) (m message, err error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return m, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < headSize-4 || size > maxFrame {
		return m, errFrame
	}
	m.kind, m.id = kind(head[4]), binary.BigEndian.Uint64(head[5:])
	m.body = make([]byte, size-(headSize-4))
	_, err = io.ReadFull(r, m.body)
	return m, err
}

// writer sends messages on a connection, one at a time.
type writer struct {
	mu   sync.Mutex
	conn net.Conn
	buf  []byte
}

// send sends a message, or ends the connection.
func (w *writer) send(m message) error {
	if len(m.body) > maxFrame-headSize {
		return errFrame
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = binary.BigEndian.AppendUint32(w.buf[:0], uint32(headSize-4+len(m.body)))
	w.buf = append(w.buf, byte(m.kind))
	w.buf = binary.BigEndian.AppendUint64(w.buf, m.id)
	w.buf = append(w.buf, m.body...)
	err := w.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err == nil {
		_, err = w.conn.Write(w.buf)
	}
	if err != nil {
		w.conn.Close()
		return fmt.Errorf("send to a member: %w", err)
	}
	return nil
}
