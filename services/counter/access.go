package counter

import (
	"errors"

	"gotycoon/access"
	"gotycoon/services/counter/frame"
)

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
