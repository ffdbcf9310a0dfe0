package memcache

import (
	"bytes"
	"context"
	"errors"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/internal/browser"
	"gotycoon/internal/netio"
)

const (
	maxValue   = 1 << 28            // bytes of a value that a client may send
	maxRequest = maxValue + 1<<20   // bytes of a request
	maxLine    = 8191               // characters of a line, as in the original
	longLine   = 1 << 20            // the same in modern servers, for long lists of keys
	largeValue = 1 << 20            // from this size on data are stored from where they are
	keepRoom   = 64 << 10           // larger scratch space is not kept
	flushSize  = 256 << 10          // replies to one command are sent when they reach this size
	binaryByte = byte(requestMagic) // begins a request of the binary protocol
)

// conn is one connection. It belongs to one goroutine.
type conn struct {
	s      *Server
	db     *db.DB
	io     *netio.Conn
	ctx    context.Context // ends when the server stops //nolint:containedctx // its lifetime
	peer   string
	modern bool

	line   []byte   // the request line without carriage returns
	words  [][]byte // of line
	quiet  bool     // noreply: the client wants no replies to the command
	value  []byte   // scratch: a value that was read, or is to be stored
	held   int      // bytes of value that the account has given
	number []byte   // scratch: text of numbers
	failed bool     // the command failed

	asked asked // the request in execution, for owed.Rights

	claims map[string][]*db.Claim // messages fetched and not deleted, by queue name, oldest first
}

// run serves the requests of the connection, one after the other.
func (c *conn) run() {
	for c.io.WaitByte() == nil {
		if c.serveOne() {
			c.trim()
			continue
		}
		_ = c.io.Flush() // the connection ends anyway
		return
	}
}

// serveOne serves one request, of which the first byte is there. It reports whether the connection
// stays open.
func (c *conn) serveOne() bool {
	if c.modern && c.io.Buffered()[0] == binaryByte {
		return c.serveBinary()
	}
	if !c.readLine() {
		return false
	}
	// A web page has sent this request: the lines of its body must not be taken for commands.
	if c.fromBrowser() || !c.weighLine() {
		return false
	}
	c.split()
	keep := c.execute()
	c.measureText()
	return keep
}

// fromBrowser reports whether the line is the first line of an HTTP request, or the beginning of
// such a line that exceeds the limit.
func (c *conn) fromBrowser() bool {
	return browser.IsRequestLine(c.line) || len(c.line) == c.longest() && browser.IsRequestStart(c.line)
}

// longest returns the limit of a line in characters.
func (c *conn) longest() int {
	if c.modern {
		return longLine
	}
	return maxLine
}

// trim drops scratch space that is too large to keep.
func (c *conn) trim() {
	if cap(c.value) > keepRoom {
		c.value = nil
	}
	c.held = 0 // given back with the request
	if cap(c.line) > keepRoom {
		c.line, c.words = nil, nil
	}
}

// readLine reads a line into c.line, without its carriage returns. A line that reaches the limit
// ends there, and its rest is the next line. It returns false if the connection has to end.
func (c *conn) readLine() bool {
	limit := c.longest()
	c.line = c.line[:0]
	for {
		got := c.io.Buffered()
		end := bytes.IndexByte(got, '\n')
		part := got
		if end >= 0 {
			part = got[:end]
		}
		used, full := c.addToLine(part, limit)
		switch {
		case full:
			c.io.Advance(used)
			return true
		case end >= 0:
			c.io.Advance(end + 1)
			return true
		}
		c.io.Advance(len(got))
		if c.io.Fill() != nil {
			return false
		}
	}
}

// addToLine appends part without its carriage returns. full reports that the line has reached the
// limit after used bytes of part.
func (c *conn) addToLine(part []byte, limit int) (used int, full bool) {
	if bytes.IndexByte(part, '\r') == len(part)-1 && len(part) > 0 && len(c.line)+len(part)-1 < limit {
		// The usual line has one carriage return, at its end.
		c.line = append(c.line, part[:len(part)-1]...)
		return len(part), false
	}
	for i, b := range part {
		if b == '\r' {
			continue
		}
		c.line = append(c.line, b)
		if len(c.line) == limit {
			return i + 1, true
		}
	}
	return len(part), false
}

// split finds the words of the line. A zero byte ends the line.
func (c *conn) split() {
	c.words = c.words[:0]
	line := c.line
	if end := bytes.IndexByte(line, 0); end >= 0 {
		line = line[:end]
	}
	for i := 0; i < len(line); {
		if isBlank(line[i]) {
			i++
			continue
		}
		start := i
		for i < len(line) && !isBlank(line[i]) {
			i++
		}
		c.words = append(c.words, line[start:i])
	}
}

// block reads the data block of a storage command: size bytes and a line end. If ok is false, the
// block is wrong or does not come, and the connection has to end. data is valid until the next
// read. room is as in change.
func (c *conn) block(size int64) (data, room []byte, ok bool) {
	if size < 0 || size > maxValue {
		return nil, nil, false
	}
	n := int(size)
	if err := c.io.NeedWith(n+1, 1); err != nil {
		c.outOfMemory(err)
		return nil, nil, false
	}
	end := 1
	if c.io.Buffered()[n] == '\r' {
		if end = 2; !c.need(n + 2) {
			return nil, nil, false
		}
	}
	data = c.io.Buffered()[:n+end]
	if data[n+end-1] != '\n' {
		return nil, nil, false
	}
	if n >= largeValue {
		room = c.io.Room(n, record.Headroom, flagBytes)
	}
	c.io.Advance(n + end)
	return data[:n], room, true
}

// need waits until n bytes are buffered. It returns false if they do not come.
func (c *conn) need(n int) bool { return c.io.Need(n) == nil }

// outOfMemory answers a request that is not read for lack of memory. The connection then ends.
func (c *conn) outOfMemory(err error) {
	if errors.Is(err, netio.ErrBusy) || errors.Is(err, netio.ErrTooLarge) {
		c.failed = true
		c.say(replyMemory)
	}
}

// weighLine charges a long line and its table of words to the connection's memory. A word takes at
// least two bytes of the line, and 24 bytes in the table: twelve times as many.
func (c *conn) weighLine() bool {
	const wordsOfLine = 12
	if len(c.line) <= keepRoom {
		return true
	}
	err := c.io.Hold(wordsOfLine * len(c.line))
	c.outOfMemory(err)
	return err == nil
}

// say adds a line to the replies.
func (c *conn) say(line string) {
	c.io.Out = append(append(c.io.Out, line...), '\r', '\n')
}

// answer adds a line to the replies, unless the client wants none.
func (c *conn) answer(line string) {
	if !c.quiet {
		c.say(line)
	}
}

// fail logs a database error, and answers which call of the original would have failed.
func (c *conn) fail(call string, err error) {
	c.failed = true
	switch denied, ok := errors.AsType[*access.Denied](err); {
	case ok:
		c.answer("CLIENT_ERROR " + denied.Error())
		return
	case errors.Is(err, netio.ErrBusy), errors.Is(err, netio.ErrTooLarge):
		c.answer(replyMemory)
		return
	case dberr.Refused(err):
		c.answer("SERVER_ERROR " + reason(err))
		return
	}
	c.s.logFailure(err)
	c.answer("SERVER_ERROR DB::" + call + " failed")
}

// reason returns the text of a database error.
func reason(err error) string {
	if e, ok := errors.AsType[*dberr.Error](err); ok {
		return e.Message
	}
	return err.Error()
}
