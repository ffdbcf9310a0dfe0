package client

import (
	"context"
	"errors"
	"io"

	"gotycoon/client/wire/counter/frame"
)

// maxCounterReply is the longest accepted body of a reply, in bytes.
const maxCounterReply = 1 << 20

var errDumping = errors.New("the connection is busy with a dump")

func (c *Counters) number(ctx context.Context, op frame.Opcode, a frame.Args) (uint32, error) {
	body, err := c.call(ctx, op, a)
	if err != nil {
		return 0, err
	}
	n, err := frame.DecodeNumber(body)
	if err != nil {
		return 0, c.end(err)
	}
	return n, nil
}

// call sends a request and returns the body of the reply.
func (c *Counters) call(ctx context.Context, op frame.Opcode, a frame.Args) (body []byte, err error) {
	if n := len(a.Name); n > frame.MaxName {
		return nil, &CounterError{Status: byte(frame.InvalidArguments), Message: frame.InvalidArguments.String()}
	}
	err = c.talk(ctx, func(cn *conn) error {
		if err := c.send(cn, op, a); err != nil {
			return err
		}
		body, err = c.receive(cn)
		return err
	})
	return body, err
}

// talk runs f on the connection. Any error but a refusal ends the connection.
func (c *Counters) talk(ctx context.Context, f func(*conn) error) error {
	switch {
	case c.lost != nil:
		return c.lost
	case c.dumping:
		return networkError(errDumping)
	}
	ctx, cancel := c.opts.limit(ctx)
	defer cancel()
	err := c.cn.during(ctx, f)
	var refused *CounterError
	if err == nil && !c.cn.broken || errors.As(err, &refused) && !c.cn.broken {
		return err
	}
	if err == nil { // the context ended after the reply
		err = networkError(context.Cause(ctx))
	}
	return c.end(err)
}

// end ends the connection.
func (c *Counters) end(err error) error {
	if !errors.Is(err, ErrNetwork) {
		err = networkError(err)
	}
	c.lost = err
	_ = c.cn.Close() // nothing more will be sent
	return err
}

func (c *Counters) send(cn *conn, op frame.Opcode, a frame.Args) error {
	c.opaque++
	cn.out = frame.AppendRequest(cn.out[:0], op, c.opaque, a)
	return cn.send()
}

// receive reads a reply and returns its body, which belongs to the caller.
func (c *Counters) receive(cn *conn) ([]byte, error) {
	var head [frame.HeaderLen]byte
	if _, err := io.ReadFull(cn.in, head[:]); err != nil {
		return nil, networkError(err)
	}
	h := frame.DecodeHeader(head[:])
	if h.Magic != frame.ReplyMagic || h.Opaque != c.opaque || h.Size > maxCounterReply {
		return nil, networkError(frame.ErrReply)
	}
	body := make([]byte, h.Size)
	if _, err := io.ReadFull(cn.in, body); err != nil {
		return nil, networkError(err)
	}
	cn.broken = false
	if h.Status != frame.OK {
		return nil, &CounterError{Status: byte(h.Status), Message: string(body)}
	}
	return body, nil
}
