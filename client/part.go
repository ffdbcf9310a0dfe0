package client

import (
	"errors"
	"io"

	"gotycoon/binproto/frame"
)

// readPart reads a part of a binary reply. Slices in the part are valid until the next read.
func readPart[T any](cn *conn, decode func([]byte) (T, int, error)) (T, error) {
	v, err := decodePart(cn, decode)
	if err != nil {
		cn.broken = true
		return v, networkError(err)
	}
	return v, nil
}

func decodePart[T any](cn *conn, decode func([]byte) (T, int, error)) (v T, err error) {
	for need := 1; ; {
		p, err := cn.peek(need)
		if err != nil {
			return v, err
		}
		v, n, err := decode(p)
		if err == nil {
			return v, cn.skip(n)
		}
		if !errors.Is(err, frame.ErrShort) {
			return v, err
		}
		need = n
	}
}

// peek returns at least n unread bytes. A part that is larger than the buffer is read into a buffer
// of its own.
func (cn *conn) peek(n int) ([]byte, error) {
	if n <= cn.in.Size() {
		if _, err := cn.in.Peek(n); err != nil {
			return nil, err
		}
		return cn.in.Peek(cn.in.Buffered())
	}
	large := make([]byte, n)
	if _, err := io.ReadFull(cn.in, large); err != nil {
		return nil, err
	}
	cn.large = large
	return large, nil
}

// skip marks the n bytes of a decoded part as read.
func (cn *conn) skip(n int) error {
	if cn.large != nil {
		cn.large = nil
		return nil
	}
	_, err := cn.in.Discard(n)
	return err
}
