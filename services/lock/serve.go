package lock

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"gotycoon/access"
	"gotycoon/client/wire/frame"
	"gotycoon/internal/browser"
	"gotycoon/internal/netio"
	"gotycoon/internal/portserver"
)

// Start begins to serve the connections of l, which now belongs to the server. It is called once.
func (s *Server) Start(l net.Listener) {
	s.workers.Go(s.clock)
	if s.table.tokens != nil {
		s.workers.Go(func() { s.table.tokens.run(s.quit) })
	}
	s.Serve(l, s.begin)
}

// begin begins the service of a connection.
func (s *Server) begin(ctx context.Context, socket net.Conn, resume func()) portserver.Service {
	return s.newConn(ctx, socket, resume)
}

func (s *Server) newConn(ctx context.Context, socket net.Conn, resume func()) *conn {
	c := &conn{server: s, socket: socket}
	c.in, c.unstop = s.Open(ctx, socket, resume, netio.Options{MaxRequest: readSize, Patient: true})
	c.address, c.push, c.step.by = socket.RemoteAddr().String(), c.pushLines, &c.session
	c.written.L, c.attempt.onSocket = &c.mu, c.attempt.try
	if sc, ok := socket.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn() // without it, writeRest sends the lines
	}
	return c
}

// Run implements portserver.Service.
func (c *conn) Run() (rests bool) {
	err := c.run()
	if errors.Is(err, netio.ErrRests) {
		return true
	}
	c.reason = err
	return false
}

// End implements portserver.Service: it ends the requests of the connection.
func (c *conn) End() {
	c.unstop()
	defer c.in.Close()
	if c.unwatch != nil {
		// unwatch waits until every connection that has lost its right is cut: none of these may be
		// granted the locks that are released below.
		c.unwatch()
	}
	c.begin()
	c.step.now = c.server.now()                                           // new holders get their whole time
	c.server.table.end(&c.step, &c.session, errors.Is(c.reason, errQuit)) // before flush, which may take long
	if err := c.flush(); c.reason == nil {
		c.reason = err
	}
	c.server.log(c.reason, c.socket)
}

func (s *Server) log(err error, socket net.Conn) {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, errQuit), errors.Is(err, netio.ErrStopped):
	case err != nil:
		s.Logger.Debug("locks: connection of " + socket.RemoteAddr().String() + ": " + err.Error())
	}
}

// run answers commands until the connection rests, or it or the server ends.
func (c *conn) run() error {
	for c.in.Ending.Err() == nil {
		if err := c.read(); err != nil {
			return err
		}
		if over, err := c.server.Move(c.in, frame.MemberLock, c.served); over {
			return c.unmoved(err)
		}
		c.served = true
		c.begin()
		if err := c.answerAll(); err != nil {
			return err
		}
		if err := c.rest(); err != nil {
			return err
		}
	}
	return netio.ErrStopped
}

// unmoved ends a connection that is not served here. reason says why it has not moved to the
// primary; nil: it has.
func (c *conn) unmoved(reason error) error {
	c.begin()
	if _, denied := errors.AsType[*access.Denied](reason); denied {
		return errors.Join(c.refuse(reason), errQuit)
	}
	if reason != nil {
		c.server.Logger.Info("locks: " + reason.Error())
		c.say(notPrimary)
	}
	return errQuit
}

// read waits for more bytes, without a time limit: a slow client must not lose what it holds.
func (c *conn) read() error {
	if len(c.in.Buffered()) > 0 {
		err := c.in.Fill()
		if err != nil && c.in.Ending.Err() == nil && errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		return err
	}
	for {
		err := c.in.WaitByte()
		if !errors.Is(err, netio.ErrCalled) {
			return err
		}
		if err := c.takeOver(); err != nil {
			return err
		}
	}
}

// answerAll answers the complete lines that have come.
func (c *conn) answerAll() error {
	for {
		buffered := c.in.Buffered()
		end := bytes.IndexByte(buffered, '\n')
		if end < 0 {
			c.in.Meter.Done() // not the time in which a slow client takes the replies
			if err := c.skipLong(buffered); err != nil || len(c.in.Buffered()) == 0 {
				return err
			}
			if more, err := c.in.More(); !more {
				return err
			}
			continue
		}
		if err := c.answerLine(buffered[:end]); err != nil {
			return err
		}
		c.in.Advance(end + 1)
		if len(c.step.told) >= deliverEvery {
			c.step.deliver()
		}
		if err := c.flushLarge(); err != nil {
			return err
		}
	}
}

// skipLong drops the beginning of a line that is too long. The CR at the end of a line of maxLine
// bytes does not make it too long.
func (c *conn) skipLong(buffered []byte) error {
	if !c.skips && browser.IsHandshake(buffered) {
		return c.misled(buffered)
	}
	if !c.skips && len(buffered) <= maxLine+1 {
		return nil
	}
	if !c.skips && browser.IsRequestStart(buffered) {
		return c.misled(buffered)
	}
	c.skips = true
	c.in.Advance(len(buffered))
	return nil
}

// misled ends a connection that speaks HTTP or TLS.
func (c *conn) misled(head []byte) error {
	reply, line := browser.Misled(head, "the protocol of locks")
	if len(reply) > 0 {
		c.session.say(func(lines []byte) []byte { return append(lines, reply...) })
	}
	c.server.Logger.Info("locks: (" + c.socket.RemoteAddr().String() + "): " + line)
	return errQuit
}

func (c *conn) answerLine(line []byte) error {
	long := c.skips || len(bytes.TrimSuffix(line, []byte{'\r'})) > maxLine
	c.skips = false
	// A web page has sent this request; lines of its body must not be taken for commands.
	if browser.IsRequestLine(line) {
		return c.misled(line)
	}
	if long {
		c.say(invalidCommand)
		return nil
	}
	cmd := parse(line)
	if c.in.Visitor != nil {
		if err := c.permit(&cmd); err != nil {
			return c.refuse(err)
		}
		if cmd.verb == verbLock || cmd.verb == verbLockFenced {
			c.watch()
		}
	}
	c.step.now = c.server.now()
	err := c.answer(&cmd)
	c.measure(&cmd, len(line))
	return err
}

// answer carries out one command. An error ends the connection.
func (c *conn) answer(cmd *command) error {
	switch cmd.verb {
	case verbLock, verbLockFenced, verbRelease, verbStatus, verbRenew, verbCancel:
		c.withKey(cmd)
	case verbStatusByKey:
		return c.statusList(byKey)
	case verbStatusByGrants:
		return c.statusList(byGrants)
	case verbStatusByRequests:
		return c.statusList(byRequests)
	case verbList:
		return c.list(cmd)
	case verbQuit:
		return errQuit
	default:
		c.say(invalidCommand)
	}
	return nil
}

// withKey carries out a command that needs a key.
func (c *conn) withKey(cmd *command) {
	if cmd.n == 0 {
		c.say(invalidKeyMissing)
		return
	}
	t, key := c.server.table, cmd.words[0]
	switch cmd.verb {
	case verbLock, verbLockFenced:
		w, refusal := cmd.wish(cmd.verb == verbLockFenced)
		if c.accepts(refusal) {
			t.lock(&c.step, key, w)
		}
	case verbRenew:
		expires, refusal := cmd.prolongation()
		if c.accepts(refusal) {
			t.renew(&c.step, key, expires)
		}
	case verbRelease:
		t.release(&c.step, key)
	case verbStatus:
		t.status(&c.step, key)
	case verbCancel:
		if cmd.n > 1 {
			t.cancelOf(&c.step, key, string(cmd.words[1]))
		} else {
			t.cancel(&c.step, key)
		}
	}
}
