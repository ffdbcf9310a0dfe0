package history

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

func dialBinary(p Ports, limit time.Duration) (Wire, error) {
	conn, err := Dial(p.Main)
	if err != nil {
		return nil, err
	}
	return &binaryWire{conn: conn, in: bufio.NewReader(conn), limit: limit}, nil
}

func (w *binaryWire) Close() { _ = w.conn.Close() }

func (w *binaryWire) Can(v Verb) bool { return v == Get || v == Set || v == Remove }

var magics = map[Verb]byte{Set: 0xB8, Remove: 0xB9, Get: 0xBA}

func (w *binaryWire) Ask(c Call) Reply {
	_ = w.conn.SetDeadline(time.Now().Add(w.limit))
	magic := magics[c.Verb]
	req := append([]byte{magic}, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0) // flags, one record, database 0
	req = binary.BigEndian.AppendUint32(req, uint32(len(c.Key)))
	if c.Verb == Set {
		req = binary.BigEndian.AppendUint32(req, uint32(len(c.Value)))
		req = binary.BigEndian.AppendUint64(req, 1<<63-1)
	}
	req = append(req, c.Key...)
	if c.Verb == Set {
		req = append(req, c.Value...)
	}
	if _, err := w.conn.Write(req); err != nil {
		return Reply{}
	}
	var head [5]byte
	if _, err := io.ReadFull(w.in, head[:1]); err != nil || head[0] != magic {
		return Reply{}
	}
	if _, err := io.ReadFull(w.in, head[1:]); err != nil {
		return Reply{}
	}
	count := binary.BigEndian.Uint32(head[1:])
	if c.Verb != Get || count == 0 {
		return Reply{Certainty: Done, OK: count > 0}
	}
	value, err := w.record()
	if err != nil {
		return Reply{}
	}
	return Reply{Certainty: Done, OK: true, Value: Number(value)}
}

func (w *binaryWire) record() (value string, err error) {
	var sizes [18]byte
	if _, err := io.ReadFull(w.in, sizes[:]); err != nil {
		return "", err
	}
	keySize, size := binary.BigEndian.Uint32(sizes[2:]), binary.BigEndian.Uint32(sizes[6:])
	if keySize+size > 1<<20 {
		return "", errors.New("the Reply makes no sense")
	}
	text := make([]byte, keySize+size)
	_, err = io.ReadFull(w.in, text)
	return string(text[keySize:]), err
}
