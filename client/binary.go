package client

import (
	"context"
	"errors"
	"io"
	"math"

	"gotycoon/client/wire/frame"
)

// BinaryRecord is a record for SetBinary. The binary protocol names databases by their index.
type BinaryRecord struct {
	DB     uint16
	Key    string
	Value  []byte
	Expiry Expiry
}

// SetBinary stores records in their order over the binary protocol, and returns how many were
// stored. Records for a database that does not exist are skipped.
func (c *Client) SetBinary(ctx context.Context, records []BinaryRecord) (stored int, err error) {
	return c.binary(ctx, bulkUpdate, frame.SetBulk, func(cn *conn) { cn.beginRecords(records, 0) })
}

// SetBinaryNoReply is SetBinary without a reply: it returns when the records are sent, and whether
// they are stored is not known.
func (c *Client) SetBinaryNoReply(ctx context.Context, records []BinaryRecord) error {
	return c.noReply(ctx, func(cn *conn) { cn.beginRecords(records, frame.NoReply) })
}

// RemoveBinary removes records over the binary protocol, and returns how many existed.
func (c *Client) RemoveBinary(ctx context.Context, db uint16, keys []string) (removed int, err error) {
	return c.binary(ctx, bulkOnce, frame.RemoveBulk, func(cn *conn) { cn.beginKeys(frame.RemoveBulk, db, keys, 0) })
}

// RemoveBinaryNoReply is RemoveBinary without a reply: it returns when the keys are sent.
func (c *Client) RemoveBinaryNoReply(ctx context.Context, db uint16, keys []string) error {
	return c.noReply(ctx, func(cn *conn) { cn.beginKeys(frame.RemoveBulk, db, keys, frame.NoReply) })
}

// GetBinary returns those of the records that exist, in the order of keys, over the binary
// protocol.
func (c *Client) GetBinary(ctx context.Context, db uint16, keys []string) (records []Record, err error) {
	err = c.with(ctx, repeated, func(cn *conn) error {
		records = nil
		cn.beginKeys(frame.GetBulk, db, keys, 0)
		hits, err := cn.finish(frame.GetBulk)
		for ; err == nil && hits > 0; hits-- {
			var r frame.Record
			if r, err = readPart(cn, frame.DecodeRecord); err == nil {
				records = append(records, Record{Key: string(r.Key), Value: append([]byte{}, r.Value...), Expires: expiresAt(r.XT)})
			}
		}
		return err
	})
	return records, err
}

// PlayScriptBinary calls a procedure of the server's script over the binary protocol.
func (c *Client) PlayScriptBinary(ctx context.Context, name string, params map[string][]byte) (out Rows, err error) {
	err = c.with(ctx, bulkOnce, func(cn *conn) error {
		cn.out = frame.AppendScript(cn.out[:0], frame.Script{Name: []byte(name), RNum: uint32(len(params))})
		for key, value := range params {
			cn.out = frame.AppendPair(cn.out, frame.Pair{Key: []byte(key), Value: value})
		}
		n, err := cn.finish(frame.PlayScript)
		out = Rows{}
		for ; err == nil && n > 0; n-- {
			var p frame.Pair
			if p, err = readPart(cn, frame.DecodePair); err == nil {
				out[string(p.Key)] = append([]byte{}, p.Value...)
			}
		}
		return err
	})
	return out, err
}

// binary sends the request that begin makes, and returns the number in the reply.
func (c *Client) binary(ctx context.Context, r repetition, m frame.Magic, begin func(*conn)) (n int, err error) {
	err = c.with(ctx, r, func(cn *conn) error {
		begin(cn)
		n, err = cn.finish(m)
		return err
	})
	return n, err
}

// noReply sends the request that begin makes, and reads no reply.
func (c *Client) noReply(ctx context.Context, begin func(*conn)) error {
	return c.with(ctx, bulkOnce, func(cn *conn) error {
		begin(cn)
		err := cn.send()
		cn.broken = err != nil
		return err
	})
}

func (cn *conn) beginRecords(records []BinaryRecord, flags uint32) {
	cn.begin(frame.SetBulk, len(records), flags)
	for _, r := range records {
		cn.out = frame.AppendRecord(cn.out, frame.Record{DBIdx: r.DB, Key: []byte(r.Key), Value: r.Value, XT: r.Expiry.binary()})
	}
}

func (cn *conn) beginKeys(m frame.Magic, db uint16, keys []string, flags uint32) {
	cn.begin(m, len(keys), flags)
	for _, key := range keys {
		cn.out = frame.AppendKey(cn.out, frame.Key{DBIdx: db, Key: []byte(key)})
	}
}

func (cn *conn) begin(m frame.Magic, n int, flags uint32) {
	cn.out = frame.AppendHeader(cn.out[:0], frame.Header{Magic: m, Flags: flags, RNum: uint32(min(int64(n), math.MaxUint32))})
}

// finish sends the request, and reads the number at the beginning of the reply.
func (cn *conn) finish(m frame.Magic) (int, error) {
	if err := cn.send(); err != nil {
		return 0, err
	}
	cn.broken = false // readPart sets it again after an error
	n, err := readPart(cn, func(p []byte) (uint32, int, error) { return frame.DecodeReply(p, m) })
	if errors.Is(err, frame.ErrRefused) {
		err = &Error{Code: Internal, Message: Internal.String(), Err: frame.ErrRefused}
	}
	return int(n), err
}

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
