package jesync

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"gotycoon/internal/browser"
	"gotycoon/internal/netio"
)

const (
	readSize  = 16 << 10 // bytes of a read buffer, at most: room for the longest line
	flushSize = 64 << 10 // bytes of replies that gather while pipelined commands are answered
	keepLines = 4 << 10  // larger buffers for lines are not kept by an idle connection
)

// How a connection ends that has done nothing wrong.
var (
	errQuit    = errors.New("the client has quit")
	errStopped = errors.New("the server stops")
	errPage    = errors.New("an HTTP request came, which ends the connection")
)

// conn is one client connection. Its goroutine reads and answers; what other goroutines may use is in session and in the fields
// that its lock protects (outbox.go).
type conn struct {
	session
	server *Server
	in     *netio.Conn
	socket net.Conn
	raw    syscall.RawConn // nil when the socket is something else, for example a pipe
	step   step
	skips  bool // within a line that is too long
	alone  bool // nobody else writes to the socket while the goroutine is busy

	unwatch func() // ends watch; nil: it has not begun

	// Protected by session.mu.
	busy    bool      // the goroutine will look at lines again before it waits
	writing bool      // somebody else writes to the socket
	written sync.Cond // writing has become false
	spare   []byte    // for lines while they are being written
}

// serve answers the commands of one connection until it ends. Then it ends the requests of the connection.
func (s *Server) serve(ctx context.Context, socket net.Conn) {
	c := s.newConn(socket)
	defer c.in.Close()
	c.begin()
	err := c.run(ctx)
	if c.unwatch != nil {
		c.unwatch() // waits until all whose right has gone are cut off: none of them is to be granted what is let go now
	}
	c.begin()
	c.step.now = s.now()                                      // those who are granted its locks now have their whole time
	s.table.end(&c.step, &c.session, errors.Is(err, errQuit)) // first: sending may take long
	if flushErr := c.flush(); err == nil {
		err = flushErr
	}
	s.log(err, socket)
}

func (s *Server) newConn(socket net.Conn) *conn {
	c := &conn{
		server: s,
		socket: socket,
		in:     netio.New(socket, s.pool, netio.Options{Timeout: s.opts.Timeout, MaxRequest: readSize, Limits: s.opts.Limits, Patient: true, Access: s.opts.Access}),
	}
	c.address, c.push, c.step.by = socket.RemoteAddr().String(), c.pushLines, &c.session
	c.written.L = &c.mu
	c.in.Meter = s.opts.Meter.NewRecorder(c.address)
	if sc, ok := socket.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn() // without it lines take another way
	}
	return c
}

func (s *Server) log(err error, socket net.Conn) {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, errQuit), errors.Is(err, errStopped):
	case err != nil:
		s.opts.Logger.Debug("locks: connection of " + socket.RemoteAddr().String() + ": " + err.Error())
	}
}

// run answers commands until the connection or the server ends.
func (c *conn) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.answerAll(); err != nil {
			return err
		}
		if err := c.rest(); err != nil {
			return err
		}
		if err := c.read(ctx); err != nil {
			return err
		}
		c.begin()
	}
	return errStopped
}

// read waits for more bytes, without a time limit: a client that is slow is not asked to give up what it holds.
func (c *conn) read(ctx context.Context) error {
	if len(c.in.Buffered()) == 0 {
		return c.in.WaitByte()
	}
	err := c.in.Fill()
	if err != nil && ctx.Err() == nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// answerAll answers the complete lines that are buffered.
func (c *conn) answerAll() error {
	for {
		buffered := c.in.Buffered()
		end := bytes.IndexByte(buffered, '\n')
		if end < 0 {
			c.in.Meter.Done() // before the replies: their clients may be slow
			return c.skipLong(buffered)
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

// skipLong drops the beginning of a line that is too long, with one byte more for a CR.
func (c *conn) skipLong(buffered []byte) error {
	if !c.skips && len(buffered) <= maxLine+1 {
		return nil
	}
	if !c.skips && browser.IsRequestStart(buffered) {
		return errPage
	}
	c.skips = true
	c.in.Advance(len(buffered))
	return nil
}

func (c *conn) answerLine(line []byte) error {
	long := c.skips || len(bytes.TrimSuffix(line, []byte{'\r'})) > maxLine
	c.skips = false
	if browser.IsRequestLine(line) { // the body of a page's request would be obeyed
		return errPage
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

// accepts says a refusal if there is one.
func (c *conn) accepts(refusal string) bool {
	if refusal != "" {
		c.say(refusal)
	}
	return refusal == ""
}

// say adds a line about no key to the replies.
func (c *conn) say(line string) {
	c.session.say(func(lines []byte) []byte { return append(append(lines, line...), '\n') })
}
