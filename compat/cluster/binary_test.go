package cluster

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// binaryWire speaks the binary protocol.
type binaryWire struct {
	conn  net.Conn
	in    *bufio.Reader
	limit time.Duration // of one request
}

func dialBinary(m *member, limit time.Duration) (wire, error) {
	conn, err := dial(m.port)
	if err != nil {
		return nil, err
	}
	return &binaryWire{conn: conn, in: bufio.NewReader(conn), limit: limit}, nil
}

func (w *binaryWire) close() { _ = w.conn.Close() }

func (w *binaryWire) can(v verb) bool { return v == get || v == set || v == remove }

var magics = map[verb]byte{set: 0xB8, remove: 0xB9, get: 0xBA}

func (w *binaryWire) ask(c call) reply {
	_ = w.conn.SetDeadline(time.Now().Add(w.limit))
	magic := magics[c.verb]
	req := append([]byte{magic}, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0) // flags, one record, database 0
	req = binary.BigEndian.AppendUint32(req, uint32(len(c.key)))
	if c.verb == set {
		req = binary.BigEndian.AppendUint32(req, uint32(len(c.value)))
		req = binary.BigEndian.AppendUint64(req, 1<<63-1)
	}
	req = append(req, c.key...)
	if c.verb == set {
		req = append(req, c.value...)
	}
	if _, err := w.conn.Write(req); err != nil {
		return doubtful
	}
	var head [5]byte
	if _, err := io.ReadFull(w.in, head[:1]); err != nil || head[0] != magic {
		return doubtful
	}
	if _, err := io.ReadFull(w.in, head[1:]); err != nil {
		return doubtful
	}
	count := binary.BigEndian.Uint32(head[1:])
	if c.verb != get || count == 0 {
		return reply{certainty: done, ok: count > 0}
	}
	value, err := w.record()
	if err != nil {
		return doubtful
	}
	return reply{certainty: done, ok: true, value: number(value)}
}

func (w *binaryWire) record() (value string, err error) {
	var sizes [18]byte
	if _, err := io.ReadFull(w.in, sizes[:]); err != nil {
		return "", err
	}
	keySize, size := binary.BigEndian.Uint32(sizes[2:]), binary.BigEndian.Uint32(sizes[6:])
	if keySize+size > 1<<20 {
		return "", errors.New("the reply makes no sense")
	}
	text := make([]byte, keySize+size)
	_, err = io.ReadFull(w.in, text)
	return string(text[keySize:]), err
}
