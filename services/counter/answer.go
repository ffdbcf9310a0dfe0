package counter

import (
	"errors"

	"gotycoon/access"
	"gotycoon/client/wire/counter/frame"
)

// answer carries out a request and appends the reply to Out. body is valid until answer returns.
func (c *conn) answer(h frame.Header, body []byte) error {
	if c.Visitor != nil {
		if err := c.permit(h.Op); err != nil {
			return c.refuse(h, err)
		}
	}
	if h.Magic != frame.RequestMagic {
		c.reply(h, frame.InvalidArguments)
		return nil
	}
	switch h.Op {
	case frame.Noop:
		c.count(cmdNoop)
		c.reply(h, frame.OK)
	case frame.Get:
		c.get(h, body)
	case frame.Acquire:
		c.acquire(h, body)
	case frame.Release:
		c.release(h, body)
	case frame.Stats:
		c.count(cmdStats) // the reply counts this request, too
		c.Out = frame.AppendStats(c.Out, h.Opaque, c.server.Stats().Rows())
	case frame.Dump:
		c.count(cmdDump)
		return c.dump(h)
	default:
		h.Op = frame.Unknown
		c.reply(h, frame.UnknownCommand)
	}
	return nil
}

func (c *conn) get(h frame.Header, body []byte) {
	a, ok := frame.DecodeGet(body)
	if !ok {
		c.reply(h, frame.InvalidArguments)
		return
	}
	c.count(cmdGet)
	current, status := c.server.table.get(a.Name)
	if status != frame.OK {
		c.reply(h, status)
		return
	}
	c.Out = frame.AppendNumber(c.Out, h.Op, h.Opaque, current)
}

func (c *conn) acquire(h frame.Header, body []byte) {
	a, ok := frame.DecodeAcquire(body)
	if !ok {
		c.reply(h, frame.InvalidArguments)
		return
	}
	c.count(cmdAcquire)
	if status := c.server.table.acquire(&c.held, a.Name, a.Resources, a.Maximum); status != frame.OK {
		c.reply(h, status)
		return
	}
	c.Out = frame.AppendNumber(c.Out, h.Op, h.Opaque, a.Resources)
}

func (c *conn) release(h frame.Header, body []byte) {
	a, ok := frame.DecodeRelease(body)
	if !ok {
		c.reply(h, frame.InvalidArguments)
		return
	}
	c.count(cmdRelease)
	c.reply(h, c.server.table.release(&c.held, a.Name, a.Resources))
}

// dump sends all counters, in no order. They are not of a single moment: no mutex is held while the
// client takes a part of the list.
func (c *conn) dump(h frame.Header) error {
	show := func(name string, current, maximum uint32) bool {
		c.Out = frame.AppendEntry(c.Out, h.Opaque, current, maximum, name)
		return len(c.Out) < dumpSize
	}
	for at, more := (position{}), true; more; {
		if at, more = c.server.table.walk(at, show); more {
			if err := c.Flush(); err != nil {
				return err
			}
		}
	}
	c.reply(h, frame.OK)
	return nil
}

func (c *conn) count(cmd command) { c.tally.n[cmd].Add(1) }

func (c *conn) reply(h frame.Header, s frame.Status) {
	c.Out = frame.AppendReply(c.Out, h.Op, h.Opaque, s)
}

// The protocol has no credentials: rules apply by the client's address and its certificate.

// errRefused ends the connection of a peer that a protected server does not serve.
var errRefused = errors.New("the peer is on another machine")

// permit returns nil when the client may make a call.
func (c *conn) permit(op frame.Opcode) error {
	switch op {
	case frame.Acquire, frame.Release:
		return c.Visitor.Service(access.Write, access.Counter)
	case frame.Get, frame.Stats, frame.Dump:
		return c.Visitor.Service(access.Read, access.Counter)
	}
	return c.Visitor.Service(0, access.Counter)
}

// refuse answers a request that is refused: the body of the reply is the reason.
func (c *conn) refuse(h frame.Header, reason error) error {
	c.Out = frame.AppendRefusal(c.Out, h.Op, h.Opaque, reason.Error())
	if denied, ok := errors.AsType[*access.Denied](reason); ok && denied.Remote {
		return errors.Join(c.Flush(), errRefused)
	}
	return nil
}
