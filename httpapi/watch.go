package httpapi

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"gotycoon/db/record"
	"gotycoon/httpapi/jsonrows"
	"gotycoon/httpapi/message"
	"gotycoon/ulog"
)

// The stream of a watch.
//
// A change is an event, and so is the beginning, a heartbeat and the end. An event is a JSON object
// in a line, or the same object as data of a server-sent event. Each has the stamp up to which the
// client has everything: with that stamp it goes on later, here or on another member of the
// cluster. Heartbeats have it too, so that a client of a prefix that never changes does not come
// back with a stamp that the log has forgotten.
//
// The goroutine of the connection reads the log at its own pace, so a client that does not read
// delays nobody. It is told when it is too far behind, or cut when it has taken nothing for -tout.
// Its rights are looked at before each batch, and once in a second at least.

const (
	watchBatch = 32 << 10    // so much is collected before it is sent; less than jsonrows.Piece
	watchLook  = time.Second // how often a quiet watch looks at its rights
)

// Reasons in the event end.
const (
	endStopping = "stopping"
	endSlow     = "slow"
	endGone     = "gone"
	endDenied   = "denied"
	endMoved    = "moved"
	endFailed   = "failed"
)

var errSlow = errors.New("the client is too far behind: connect again with the last ts, and read faster")

// eventStream is what is sent to a client that watches.
type eventStream struct {
	*Session
	w      jsonrows.Writer
	sse    bool       // server-sent events
	large  large      // the event that is being sent
	at     ulog.Stamp // everything up to here is sent or in w
	gone   ulog.Stamp // everything up to here is sent
	sent   time.Time  // when something was last sent
	pieces int        // how often a part of an event was sent
	looked time.Time  // at the rights
}

// large is what is known of an event that is sent in parts.
type large struct {
	began time.Time
	sent  int // bytes so far
	held  int // bytes that are in memory until all is sent
}

// serveWatch answers the call of watch with events, until the watch ends.
func (s *Session) serveWatch() (status int) {
	t := &eventStream{Session: s, sse: names(s.req.Accept(), typeEvents), at: s.watch.At(), sent: time.Now()}
	t.w.Full = func(piece []byte) ([]byte, error) {
		t.pieces++
		if t.large.sent += len(piece); t.conn.Drips(t.large.began, t.large.sent, t.large.held) {
			return piece[:0], errBroken
		}
		return t.send(piece)
	}
	kind := typeLines
	if t.sse {
		kind = typeEvents
	}
	s.req.KeepAlive = false
	s.reply.head(statusOK, false, noLength)
	s.reply.header("Cache-Control: ", "no-store")
	s.reply.header("Content-Type: ", kind)
	if !s.req.Old {
		s.reply.header("Transfer-Encoding: ", "chunked")
	}
	s.reply.header("X-Accel-Buffering: ", "no") // proxies that would wait for more
	s.reply.endHead()
	if s.req.Method == message.HEAD {
		return statusOK
	}
	t.event("begin")
	t.close()
	err := t.flush()
	if err == nil {
		err = t.tell()
	}
	if errors.Is(err, errBroken) {
		return statusBroken
	}
	t.end(err)
	if t.flush() != nil {
		return statusBroken
	}
	if !s.req.Old {
		s.conn.Out = append(s.conn.Out, "0\r\n\r\n"...)
	}
	s.conn.Meter.Restart()
	return statusOK
}

// tell sends changes and heartbeats until the watch ends, and returns why: nil when the server
// stops.
func (t *eventStream) tell() error {
	for !t.watch.Stopping() {
		err := t.watch.Each(t.pass)
		if err == nil {
			t.at = t.watch.At()
			err = t.look()
		}
		if err == nil {
			err = t.watch.Wait(min(watchLook, time.Until(t.sent.Add(t.watch.heartbeat))))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pass takes one update of the log.
func (t *eventStream) pass(e ulog.Entry) error {
	if err := t.change(e); err != nil {
		return err
	}
	t.at = t.watch.At()
	if time.Since(t.looked) < watchLook {
		return nil
	}
	if t.watch.Stopping() {
		return errStopping
	}
	return t.look()
}

// look looks at the client and its rights, and sends what has been collected, or a heartbeat. A
// client that has closed its own direction counts as gone, so that its place is free at once.
func (t *eventStream) look() error {
	t.looked = time.Now()
	if t.conn.Gone() {
		return errBroken
	}
	if err := t.mayGoOn(); err != nil {
		return err
	}
	if err := t.flush(); err != nil {
		return err
	}
	return t.beat()
}

// change sends an update if it is for the client.
func (t *eventStream) change(e ulog.Entry) error {
	u, err := ulog.ParseMessage(e.Message)
	if err != nil || int(u.DBID) != t.watch.number || u.Op != ulog.OpClear && !bytes.HasPrefix(u.Key, t.watch.prefix) {
		return nil
	}
	if len(t.w.Buf)+len(u.Key)+len(u.Value) >= watchBatch {
		if err := t.mayGoOn(); err != nil {
			return err
		}
	}
	before := t.pieces
	t.large = large{began: time.Now(), held: len(u.Key) + len(u.Value)}
	t.at = t.watch.At()
	switch u.Op {
	case ulog.OpSet:
		t.event("set")
		t.putKey(u.Key)
		t.putValue(u.Value)
	case ulog.OpRemove:
		t.event("remove")
		t.putKey(u.Key)
	case ulog.OpClear:
		t.event("clear")
	default:
		return nil
	}
	t.close()
	if t.w.Err() != nil {
		return errBroken
	}
	if len(t.w.Buf) < watchBatch && t.pieces == before {
		return nil
	}
	if err := t.flush(); err != nil { // the rest of an event leaves whatever becomes of the rights
		return err
	}
	if n, known := t.watch.Behind(); known && n > t.opts.MaxBehind {
		return errSlow
	}
	return nil
}

// errStopping ends a watch that has much to tell while the server stops.
var errStopping = errors.New("the server stops")

// mayGoOn returns an error if the client has lost its rights. What has been collected for it is not
// sent then, and not counted as sent.
func (t *eventStream) mayGoOn() error {
	err := t.renewRights()
	if err != nil {
		t.w.Buf, t.at = t.w.Buf[:0], t.gone
	}
	return err
}

// beat sends a heartbeat if nothing has been sent for long.
func (t *eventStream) beat() error {
	if time.Since(t.sent) < t.watch.heartbeat {
		return nil
	}
	if t.sse { // no event fires, but the browser notes the ID
		t.w.Raw(": heartbeat\nid: " + t.stamp() + "\n\n")
	} else {
		t.event("heartbeat")
		t.close()
	}
	return t.flush()
}

// end sends the last event.
func (t *eventStream) end(err error) {
	t.event("end")
	reason := endFailed
	switch {
	case err == nil, errors.Is(err, errStopping):
		reason, err = endStopping, errStopping
	case errors.Is(err, errSlow):
		reason = endSlow
	case isGone(err):
		reason, err = endGone, &goneError{err}
	case errors.Is(err, ErrElsewhere):
		reason = endMoved
	case t.gate.denied != nil:
		reason = endDenied
	}
	t.w.Raw(`,"reason":"` + reason + `","error":`)
	t.w.Text([]byte(err.Error()))
	t.close()
}

func (t *eventStream) stamp() string { return strconv.FormatUint(uint64(t.at), 10) }

// event begins an event: close ends it.
func (t *eventStream) event(name string) {
	at := t.stamp()
	if t.sse {
		t.w.Raw("id: " + at + "\nevent: " + name + "\ndata: ")
	}
	t.w.Raw(`{"event":"` + name + `","ts":"` + at + `"`)
}

func (t *eventStream) close() {
	t.w.Raw("}\n")
	if t.sse {
		t.w.Raw("\n")
	}
}

func (t *eventStream) putKey(key []byte) {
	t.w.Raw(`,"key":`)
	t.w.Bytes(key)
}

// putValue writes the value of a record, from its stored form.
func (t *eventStream) putValue(stored []byte) {
	xt, value := record.MaxXT, stored
	if !t.watch.persistent {
		var ok bool
		if xt, value, ok = record.Split(stored); !ok {
			xt, value = record.MaxXT, stored
		}
	}
	if !t.watch.keys {
		t.w.Raw(`,"value":`)
		t.w.Bytes(value)
	}
	if xt < record.MaxXT {
		t.w.Raw(`,"xt":` + strconv.FormatInt(xt, 10))
	}
}

// flush sends what has been collected.
func (t *eventStream) flush() error {
	var err error
	t.w.Buf, err = t.send(t.w.Buf)
	if cap(t.w.Buf) > keepScratch { // of a large event
		t.w.Buf = nil
	}
	t.gone = t.at
	return err
}

// send sends a piece of the stream, as a chunk.
func (t *eventStream) send(piece []byte) ([]byte, error) {
	out := t.conn.Out
	switch {
	case len(piece) == 0:
	case t.req.Old:
		out = append(out, piece...)
	default:
		out = append(strconv.AppendInt(out, int64(len(piece)), 16), crlf...)
		out = append(append(out, piece...), crlf...)
	}
	t.conn.Out = out
	if len(out) > 0 {
		if t.conn.Flush() != nil {
			return piece[:0], errBroken
		}
		t.sent = time.Now()
	}
	return piece[:0], nil
}
