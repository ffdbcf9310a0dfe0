package memcache

import (
	"bytes"
	"errors"
	"strconv"

	"gotycoon/access"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/internal/browser"
	"gotycoon/internal/netio"
)

const (
	maxValue   = 1 << 28          // bytes of a value that a client may send
	maxRequest = maxValue + 1<<20 // bytes of a request
	maxLine    = 8191             // characters of a line, as in the original
	longLine   = 1 << 20          // the same in modern servers, for long lists of keys
	largeValue = 1 << 20          // from this size on data are stored from where they are
	keepRoom   = 64 << 10         // larger scratch space is not kept
	flushSize  = 256 << 10        // replies to one command are sent when they reach this size
)

// Replies of several commands.
const (
	replyError    = "ERROR"
	replyWords    = "CLIENT_ERROR invalid parameters"
	replyFormat   = "CLIENT_ERROR bad command line format"
	replyReadOnly = "SERVER_ERROR server is read-only"
	replyNotFound = "NOT_FOUND"
	replyStored   = "STORED"
	replyNot      = "NOT_STORED"
	replyExists   = "EXISTS"
	replyMemory   = "SERVER_ERROR out of memory"
)

// wire reads the lines and data blocks of requests, and writes replies.
type wire struct {
	base
	line   []byte   // the request line without carriage returns
	words  [][]byte // of line
	quiet  bool     // noreply: the client wants no replies to the command
	failed bool     // the command failed
}

// fromBrowser reports whether the line is the first line of an HTTP request, or the beginning of
// such a line that exceeds the limit.
func (w *wire) fromBrowser() bool {
	return browser.IsRequestLine(w.line) || len(w.line) == w.longest() && browser.IsRequestStart(w.line)
}

// longest returns the limit of a line in characters.
func (w *wire) longest() int {
	if w.modern {
		return longLine
	}
	return maxLine
}

// readLine reads a line into w.line, without its carriage returns. A line that reaches the limit
// ends there, and its rest is the next line. It returns false if the connection has to end.
func (w *wire) readLine() bool {
	limit := w.longest()
	w.line = w.line[:0]
	for {
		got := w.io.Buffered()
		end := bytes.IndexByte(got, '\n')
		part := got
		if end >= 0 {
			part = got[:end]
		}
		used, full := w.addToLine(part, limit)
		switch {
		case full:
			w.io.Advance(used)
			return true
		case end >= 0:
			w.io.Advance(end + 1)
			return true
		}
		w.io.Advance(len(got))
		if w.io.Fill() != nil {
			return false
		}
	}
}

// addToLine appends part without its carriage returns. full reports that the line has reached the
// limit after used bytes of part.
func (w *wire) addToLine(part []byte, limit int) (used int, full bool) {
	if bytes.IndexByte(part, '\r') == len(part)-1 && len(part) > 0 && len(w.line)+len(part)-1 < limit {
		// The usual line has one carriage return, at its end.
		w.line = append(w.line, part[:len(part)-1]...)
		return len(part), false
	}
	for i, b := range part {
		if b == '\r' {
			continue
		}
		w.line = append(w.line, b)
		if len(w.line) == limit {
			return i + 1, true
		}
	}
	return len(part), false
}

// split finds the words of the line. A zero byte ends the line.
func (w *wire) split() {
	words, line := w.words[:0], w.line
	if end := bytes.IndexByte(line, 0); end >= 0 {
		line = line[:end]
	}
	for i := 0; i < len(line); i++ {
		if isBlank(line[i]) {
			continue
		}
		begin := i
		for i++; i < len(line) && !isBlank(line[i]); i++ {
		}
		words = append(words, line[begin:i])
	}
	w.words = words
}

// block reads the data block of a storage command: size bytes and a line end. If ok is false, the
// block is wrong or does not come, and the connection has to end. data is valid until the next
// read. room is as in change.
func (w *wire) block(size int64) (data, room []byte, ok bool) {
	if size < 0 || size > maxValue {
		return nil, nil, false
	}
	n := int(size)
	if err := w.io.NeedWith(n+1, 1); err != nil {
		w.outOfMemory(err)
		return nil, nil, false
	}
	end := 1
	if w.io.Buffered()[n] == '\r' {
		if end = 2; !w.need(n + 2) {
			return nil, nil, false
		}
	}
	data = w.io.Buffered()[:n+end]
	if data[n+end-1] != '\n' {
		return nil, nil, false
	}
	if n >= largeValue {
		room = w.io.Room(n, record.Headroom, flagBytes)
	}
	w.io.Advance(n + end)
	return data[:n], room, true
}

// need waits until n bytes are buffered. It returns false if they do not come.
func (w *wire) need(n int) bool { return w.io.Need(n) == nil }

// outOfMemory answers a request that is not read for lack of memory. The connection then ends.
func (w *wire) outOfMemory(err error) {
	if errors.Is(err, netio.ErrBusy) || errors.Is(err, netio.ErrTooLarge) {
		w.failed = true
		w.say(replyMemory)
	}
}

// weighLine charges a long line and its table of words to the connection's memory. A word takes at
// least two bytes of the line, and 24 bytes in the table: twelve times as many.
func (w *wire) weighLine() bool {
	const wordsOfLine = 12
	if len(w.line) <= keepRoom {
		return true
	}
	err := w.io.Hold(wordsOfLine * len(w.line))
	w.outOfMemory(err)
	return err == nil
}

// say adds a line to the replies.
func (w *wire) say(line string) {
	w.io.Out = append(append(w.io.Out, line...), '\r', '\n')
}

// answer adds a line to the replies, unless the client wants none.
func (w *wire) answer(line string) {
	if !w.quiet {
		w.say(line)
	}
}

// fail logs a database error, and answers which call of the original would have failed.
func (w *wire) fail(call string, err error) {
	w.failed = true
	switch denied, ok := errors.AsType[*access.Denied](err); {
	case ok:
		w.answer("CLIENT_ERROR " + denied.Error())
		return
	case errors.Is(err, netio.ErrBusy), errors.Is(err, netio.ErrTooLarge):
		w.answer(replyMemory)
		return
	case dberr.Expected(err):
		w.answer("SERVER_ERROR " + reason(err))
		return
	}
	w.s.logFailure(err)
	w.answer("SERVER_ERROR DB::" + call + " failed")
}

// reason returns the text of a database error.
func reason(err error) string {
	if e, ok := errors.AsType[*dberr.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// wantsReply looks for noreply behind the first n words.
func (w *wire) wantsReply(n int) {
	for _, word := range w.words[n:] {
		if string(word) == "noreply" {
			w.quiet = true
		}
	}
}

// quietAt reports whether a word is noreply.
func (w *wire) quietAt(i int) bool { return string(w.words[i]) == "noreply" }

// sayValue adds an item to the replies, with its version if that was asked for. A large item is
// sent at once. It reports whether the connection stays.
func (w *wire) sayValue(it *item) bool {
	out := append(w.io.Out, "VALUE "...)
	out = append(out, it.key...)
	out = append(out, ' ')
	out = strconv.AppendUint(out, uint64(it.flags), 10)
	out = append(out, ' ')
	out = strconv.AppendInt(out, int64(len(it.data)), 10)
	if it.version != 0 {
		out = append(out, ' ')
		out = strconv.AppendUint(out, it.version, 10)
	}
	w.io.Out = append(out, '\r', '\n')
	return w.sayData(it.data) && w.sayEnd()
}

// sayData adds the data of an item to the replies. It sends large data at once, so that they are in
// memory only once.
func (w *wire) sayData(data []byte) bool {
	if len(data) > flushSize {
		return w.io.Send(data) == nil
	}
	w.io.Out = append(w.io.Out, data...)
	return true
}

func (w *wire) sayEnd() bool {
	w.io.Out = append(w.io.Out, '\r', '\n')
	return true
}
