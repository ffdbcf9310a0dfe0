package client

import (
	"context"
	"errors"
	"io"
	"math"

	"gotycoon/binproto/frame"
)

// errRefused is the server's answer to a binary request that it could not serve.
var errRefused = errors.New("the server refused the request")

// BinaryRecord is a record of a binary bulk. Databases have numbers there.
type BinaryRecord struct {
	DB    uint16
	Key   string
	Value []byte
	XT    XT // of a reply: seconds since 1970
}

// SetBinary stores records in their order over the binary protocol and returns how many. Without reply it returns as soon
// as they are sent.
func (c *Client) SetBinary(ctx context.Context, records []BinaryRecord, noReply bool) (stored int, err error) {
	err = c.with(ctx, func(cn *conn) error {
		cn.begin(frame.SetBulk, len(records), noReply)
		for _, r := range records {
			cn.out = frame.AppendRecord(cn.out, frame.Record{DBIdx: r.DB, Key: []byte(r.Key), Value: r.Value, XT: int64(r.XT)})
		}
		stored, err = cn.finish(frame.SetBulk, noReply)
		return err
	})
	return stored, err
}

// RemoveBinary removes records over the binary protocol and returns how many there were.
func (c *Client) RemoveBinary(ctx context.Context, db uint16, keys []string, noReply bool) (removed int, err error) {
	err = c.with(ctx, func(cn *conn) error {
		cn.beginKeys(frame.RemoveBulk, db, keys, noReply)
		removed, err = cn.finish(frame.RemoveBulk, noReply)
		return err
	})
	return removed, err
}

// GetBinary returns the records that exist, in the order of keys, over the binary protocol.
func (c *Client) GetBinary(ctx context.Context, db uint16, keys []string) (records []BinaryRecord, err error) {
	err = c.with(ctx, func(cn *conn) error {
		cn.beginKeys(frame.GetBulk, db, keys, false)
		hits, err := cn.finish(frame.GetBulk, false)
		for ; err == nil && hits > 0; hits-- {
			var r frame.Record
			if r, err = readPart(cn, frame.DecodeRecord); err == nil {
				records = append(records, binaryRecord(r))
			}
		}
		return err
	})
	return records, err
}

func binaryRecord(r frame.Record) BinaryRecord {
	xt := XT(r.XT)
	if r.XT >= 1<<40-1 {
		xt = Never
	}
	return BinaryRecord{DB: r.DBIdx, Key: string(r.Key), Value: append([]byte{}, r.Value...), XT: xt}
}

// PlayScriptBinary calls a script procedure over the binary protocol.
func (c *Client) PlayScriptBinary(ctx context.Context, name string, params map[string][]byte) (out Rows, err error) {
	err = c.with(ctx, func(cn *conn) error {
		cn.out = frame.AppendScript(cn.out[:0], frame.Script{Name: []byte(name), RNum: uint32(len(params))})
		for key, value := range params {
			cn.out = frame.AppendPair(cn.out, frame.Pair{Key: []byte(key), Value: value})
		}
		n, err := cn.finish(frame.PlayScript, false)
		out = make(Rows, n)
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

func (cn *conn) begin(m frame.Magic, n int, noReply bool) {
	h := frame.Header{Magic: m, RNum: uint32(min(n, math.MaxUint32))}
	if noReply {
		h.Flags = frame.NoReply
	}
	cn.out = frame.AppendHeader(cn.out[:0], h)
}

func (cn *conn) beginKeys(m frame.Magic, db uint16, keys []string, noReply bool) {
	cn.begin(m, len(keys), noReply)
	for _, key := range keys {
		cn.out = frame.AppendKey(cn.out, frame.Key{DBIdx: db, Key: []byte(key)})
	}
}

// finish sends the request and reads the number that a reply begins with.
func (cn *conn) finish(m frame.Magic, noReply bool) (int, error) {
	cn.broken = true
	if _, err := cn.Write(cn.out); err != nil {
		return 0, networkError(err)
	}
	if noReply {
		cn.broken = false
		return 0, nil
	}
	first, err := cn.in.Peek(1)
	if err != nil {
		return 0, networkError(err)
	}
	if frame.Magic(first[0]) == frame.Error {
		return 0, &Error{Code: Internal, Message: Internal.String(), Err: errRefused}
	}
	cn.broken = false // unless something goes wrong from here on
	n, err := readPart(cn, func(p []byte) (uint32, int, error) { return frame.DecodeReply(p, m) })
	return int(n), err
}

// readPart reads one part of a reply. Its slices are valid until the next read.
func readPart[T any](cn *conn, decode func([]byte) (T, int, error)) (T, error) {
	need := 1
	for {
		p, err := cn.peek(need)
		if err != nil {
			var none T
			cn.broken = true
			return none, networkError(err)
		}
		v, n, err := decode(p)
		if errors.Is(err, frame.ErrShort) {
			need = n
			continue
		}
		if err == nil {
			err = cn.skip(n)
		}
		if err != nil {
			cn.broken = true
			return v, networkError(err)
		}
		return v, nil
	}
}

// peek returns at least n unread bytes, and reads a part that is larger than the buffer into one of its own.
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

// skip marks n bytes as read.
func (cn *conn) skip(n int) error {
	if cn.large != nil {
		cn.large = nil
		return nil
	}
	_, err := cn.in.Discard(n)
	return err
}
