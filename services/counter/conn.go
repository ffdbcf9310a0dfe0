package counter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"

	"gotycoon/client/wire/counter/frame"
	memberframe "gotycoon/client/wire/frame"
	"gotycoon/internal/browser"
	"gotycoon/internal/netio"
	"gotycoon/internal/portserver"
)

const (
	maxRequest = 30 << 20          // a longer request ends its connection
	bufferSize = 2 * frame.MaxBody // of a read buffer, at most
	dumpSize   = 64 << 10          // a reply to Dump is sent in parts of about this size
	wholeBody  = frame.MaxBody     // of a longer body only this many bytes are kept
)

// errTooLong ends a connection whose request exceeds maxRequest.
var errTooLong = errors.New("request over 30 MiB")

// conn is one client connection.
type conn struct {
	*netio.Conn
	server *Server
	tally  *tally
	held   holding
	client net.Conn
	served bool  // a request has been served here
	reason error // for the end of the connection
	unstop func() bool
}

// begin begins the service of a connection.
func (s *Server) begin(ctx context.Context, socket net.Conn, resume func()) portserver.Service {
	s.open.Add(1)
	c := &conn{server: s, tally: &s.tallies[s.accepted.Add(1)%tallies], client: socket}
	c.Conn, c.unstop = s.Open(ctx, socket, resume, netio.Options{MaxRequest: bufferSize, Patient: true})
	return c
}

// Run implements portserver.Service: it answers requests in their order, until the connection rests
// or is over. Replies to pipelined requests are sent together.
func (c *conn) Run() (rests bool) {
	err := c.run()
	if errors.Is(err, netio.ErrRests) {
		return true
	}
	c.reason = err
	return false
}

// End implements portserver.Service: it releases what the connection has acquired.
func (c *conn) End() {
	defer c.server.open.Add(-1)
	defer c.Close()
	defer c.server.table.releaseAll(&c.held)
	c.unstop()
	if c.reason == nil || c.Ending.Err() != nil {
		c.reason = c.Flush()
	}
	c.server.log(c.reason, c.client)
}

func (s *Server) log(err error, socket net.Conn) {
	switch {
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
	case errors.Is(err, errTooLong):
		s.Logger.Warn("counter: closing the connection of " + socket.RemoteAddr().String() + ": " + err.Error())
	default:
		s.Logger.Debug("counter: connection of " + socket.RemoteAddr().String() + ": " + err.Error())
	}
}

// run answers requests until the connection rests, or it or the server ends.
func (c *conn) run() error {
	for c.Ending.Err() == nil {
		if err := c.WaitByte(); err != nil {
			return err
		}
		if head := c.Buffered(); !c.served && browser.IsRequestStart(head) {
			// The original waits for the rest of what it takes for a request, and so do we.
			_, line := browser.Misled(head, "the protocol of counters")
			c.server.Logger.Info("counter: (" + c.client.RemoteAddr().String() + "): " + line)
		}
		if over, err := c.server.Move(c.Conn, memberframe.MemberCounter, c.served); over {
			return c.refuseUnmoved(err)
		}
		c.served = true
		if err := c.next(); err != nil {
			return err
		}
	}
	return nil
}

// next answers one request when it is complete.
func (c *conn) next() error {
	if err := c.need(frame.HeaderLen); err != nil {
		return err
	}
	h := frame.DecodeHeader(c.Buffered())
	if h.Size > wholeBody {
		return c.long(h)
	}
	size := frame.HeaderLen + int(h.Size)
	if err := c.need(size); err != nil {
		if errors.Is(err, netio.ErrBusy) {
			c.outOfMemory(h)
		}
		return err
	}
	body := c.Buffered()[frame.HeaderLen:size]
	err := c.answer(h, body)
	c.measure(h, body)
	c.Advance(size)
	return err
}

// refuseUnmoved answers a request for which the primary has not been reached, before its connection
// ends. Without a reason the connection is over without an answer.
func (c *conn) refuseUnmoved(reason error) error {
	if reason == nil || c.need(frame.HeaderLen) != nil {
		return nil
	}
	h := frame.DecodeHeader(c.Buffered())
	c.Out = frame.AppendRefusal(c.Out, h.Op, h.Opaque, reason.Error())
	return nil
}

// outOfMemory answers a request for which there is no memory, before its connection ends.
func (c *conn) outOfMemory(h frame.Header) {
	text := frame.OutOfMemory.String()
	c.Out = frame.AppendHeader(c.Out, frame.Header{Magic: frame.ReplyMagic, Op: h.Op, Status: frame.OutOfMemory, Size: uint32(len(text)), Opaque: h.Opaque})
	c.Out = append(c.Out, text...)
	_ = c.Flush() // the connection ends anyway
}

// need reads until n bytes are buffered. The rest of an incomplete request has no time limit: a
// slow client must not lose what it has acquired. The replies to earlier requests do have a time
// limit. Fill and Flush report a missed limit by the same error, so need sends the replies first,
// and knows then that this error of Fill is about reading, and may be ignored.
func (c *conn) need(n int) error {
	for len(c.Buffered()) < n {
		if err := c.Flush(); err != nil {
			return err
		}
		err := c.Fill()
		if err != nil && (c.Ending.Err() != nil || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return err
		}
	}
	return nil
}

// long answers a request whose body is longer than any that has a meaning. It keeps the first
// wholeBody bytes of the body and drops the rest.
func (c *conn) long(h frame.Header) error {
	if err := c.need(frame.HeaderLen + wholeBody); err != nil {
		return err
	}
	body := bytes.Clone(c.Buffered()[frame.HeaderLen:][:wholeBody])
	c.Advance(frame.HeaderLen + wholeBody)
	for seen, left := frame.HeaderLen+wholeBody, int64(h.Size)-wholeBody; left > 0; {
		if seen > maxRequest {
			return errTooLong
		}
		if err := c.need(1); err != nil {
			return err
		}
		n := min(int64(len(c.Buffered())), left)
		c.Advance(int(n))
		seen, left = seen+int(n), left-n
	}
	err := c.answer(h, body)
	c.measure(h, body)
	return err
}
