package httpapi

import (
	"strconv"
	"sync/atomic"
	"time"

	"gotycoon/access"
	"gotycoon/client/wire/tsv"
	"gotycoon/db/record"
	"gotycoon/httpapi/jsonrows"
	"gotycoon/httpapi/message"
	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

// statusLine returns the code and its reason.
func statusLine(status int) string {
	switch status {
	case statusOK:
		return "200 OK"
	case statusCreated:
		return "201 Created"
	case statusNoContent:
		return "204 No Content"
	case statusBadRequest:
		return "400 Bad Request"
	case statusUnauthorized:
		return "401 Unauthorized"
	case statusForbidden:
		return "403 Forbidden"
	case statusNotFound:
		return "404 Not Found"
	case statusGone:
		return "410 Gone"
	case statusTooLarge:
		return "413 Request Entity Too Large"
	case statusLogical:
		return "450 Logical Inconsistency"
	case statusNotImplemented:
		return "501 Not Implemented"
	case statusUnavailable:
		return "503 Service Unavailable"
	case statusNoSpace:
		return "507 Insufficient Storage"
	}
	return "500 Internal Server Error"
}

const (
	crlf = "\r\n"

	// replyOpening is what every reply begins with.
	replyOpening = "HTTP/1.1 "

	// serverName is what clients of Kyoto Tycoon look for.
	serverName = "KyotoTycoon/0.9.56b"

	// noLength leaves the Content-Length out.
	noLength = -1

	// maxUnsent is how much the replies to pipelined requests may grow before they are sent.
	maxUnsent = 256 << 10
)

// replyWriter appends the replies to a connection's requests to netio.Conn.Out.
type replyWriter struct {
	c    *netio.Conn
	req  *message.Request // that is answered
	now  func() time.Time
	date *dateCache // of all sessions

	json       bool              // procedures are answered in JSON
	browser    bool              // a browser gets the reply, see endHead
	positioned func() ulog.Stamp // returns the position that the client wants with the reply; nil: it wants none
}

// head appends the status line and the headers that every reply has. The caller appends its own
// headers, in the order of their names, and the empty line (endHead).
func (w *replyWriter) head(status int, keepAlive bool, length int) {
	out := append(w.c.Out, replyOpening...)
	out = append(out, statusLine(status)...)
	out = append(out, "\r\nServer: "+serverName+"\r\nDate: "...)
	out = append(out, w.date.text(w.now())...)
	if !keepAlive {
		out = append(out, "\r\nConnection: close"...)
	}
	if length != noLength {
		out = append(out, "\r\nContent-Length: "...)
		out = strconv.AppendInt(out, int64(length), 10)
	}
	if w.positioned != nil {
		out = append(out, "\r\nX-Kt-Position: "...)
		out = strconv.AppendUint(out, uint64(w.positioned()), 10)
	}
	w.c.Out = append(out, crlf...)
}

// position returns the stamp that a reply is given: that of the newest update.
func position(log *ulog.Log) ulog.Stamp {
	if at, _ := log.NewestUpdate(); at > 0 {
		return at
	}
	return log.Last()
}

// dateCache keeps the text of the Date header for the second it is true.
type dateCache struct {
	current atomic.Pointer[dateText]
}

type dateText struct {
	second int64
	text   []byte
}

func (d *dateCache) text(now time.Time) []byte {
	second := now.Unix()
	if c := d.current.Load(); c != nil && c.second == second {
		return c.text
	}
	c := &dateText{second, appendHTTPDate(nil, second)}
	d.current.Store(c)
	return c.text
}

// appendHTTPDate appends a date as HTTP has it, in GMT. Years above 9999 get a fifth digit.
func appendHTTPDate(dst []byte, second int64) []byte {
	return time.Unix(second, 0).UTC().AppendFormat(dst, "Mon, 02 Jan 2006 15:04:05 GMT")
}

// header appends one header. Text from the request cannot break out of it: lines have no line ends.
func (w *replyWriter) header(name, value string) {
	w.c.Out = append(append(append(w.c.Out, name...), value...), crlf...)
}

// headerXT appends the expiration time, if the record has one.
func (w *replyWriter) headerXT(xt int64) {
	if xt < record.MaxXT {
		w.c.Out = appendHTTPDate(append(w.c.Out, "X-Kt-Xt: "...), xt)
		w.c.Out = append(w.c.Out, crlf...)
	}
}

// The headers that keep a browser from taking a reply for a page or a script of this server.
// Anybody who may write can store a page. If a browser showed the page as such, its scripts would
// call procedures with the rights of the user who opens it. nosniff keeps the browser to the
// Content-Type of the reply. The sandbox takes scripts and the origin from what is shown all the
// same, and default-src what it would load.
//
// Our own page has no sandbox: a link on a sandboxed page counts as one of another site, and would
// be refused.
//
// Programs do not get these headers: their replies are the original's, byte for byte.
const (
	noSniffing = "X-Content-Type-Options: nosniff" + crlf + crlf // and the end of the header
	asRecord   = "Content-Security-Policy: sandbox; default-src 'none'" + crlf + noSniffing
	asOwnPage  = "Content-Security-Policy: default-src 'none'" + crlf + noSniffing
)

func (w *replyWriter) endHead() { w.endWith(asRecord) }

// endWith ends the header. A browser gets a policy with it.
func (w *replyWriter) endWith(policy string) {
	end := crlf
	if w.browser {
		end = policy
	}
	w.c.Out = append(w.c.Out, end...)
}

// empty answers without a body.
func (w *replyWriter) empty(status int) int {
	w.head(status, w.req.KeepAlive, 0)
	w.endHead()
	return status
}

// recordHead appends the whole header of a reply with a record, or of the reply to its HEAD. The
// original sends no Content-Type. A browser is told one that it downloads: without a type, browsers
// differ in what they make of a reply with nosniff. With text/plain they would show binary values
// as text, and keep images from the pages of other hosts in -http-hosts.
func (w *replyWriter) recordHead(size int, xt int64) {
	w.head(statusOK, w.req.KeepAlive, size)
	if w.browser {
		w.c.Out = append(w.c.Out, "Content-Type: application/octet-stream"+crlf...)
	}
	w.headerXT(xt)
	w.endHead()
}

// text answers with a text, which a reply to HEAD leaves out. An empty kind is no Content-Type, but
// plain text for a browser.
func (w *replyWriter) text(status int, keepAlive bool, kind, text string) {
	length := len(text)
	if kind == "" && w.browser {
		kind = plainText
	}
	if w.req.Method == message.HEAD {
		text, length = "", noLength
	}
	w.head(status, keepAlive, length)
	if kind != "" {
		w.header("Content-Type: ", kind)
	}
	if status == statusUnauthorized {
		w.header("WWW-Authenticate: ", access.Challenge)
	}
	w.endHead()
	w.c.Out = append(w.c.Out, text...)
}

// table answers a call of p, nil for an unknown procedure, with its output rows.
func (w *replyWriter) table(p *procedure, o *output, status int) {
	if w.json {
		w.jsonTable(p, o, status)
		return
	}
	enc := o.rows.Choose()
	length := noLength
	if w.req.Method != message.HEAD {
		length = o.rows.EncodedLen(enc)
	}
	w.head(status, w.req.KeepAlive, length)
	w.header("Content-Type: ", enc.ContentType())
	w.endHead()
	switch {
	case w.req.Method == message.HEAD:
	case length > maxUnsent:
		w.sendTable(&o.rows, enc)
	default:
		w.c.Out = o.rows.AppendEncoded(w.c.Out, enc)
	}
}

// columnPiece is how much of a column is encoded at once: a multiple of three bytes, of which
// Base64 makes four letters.
const columnPiece = 48 << 10

// sendTable sends the output rows while it encodes them, so that a large reply never is in memory
// as a whole. Its length has been sent already: when the client is gone, so is the connection.
func (w *replyWriter) sendTable(rows *tsv.Rows, enc tsv.Encoding) {
	rows.SortEncoded(enc)
	for row := range rows.All() {
		if !w.sendColumn(row.Name, enc, '\t') || !w.sendColumn(row.Value, enc, '\n') {
			w.req.KeepAlive = false
			return
		}
	}
}

// sendColumn appends a column and the byte behind it, and sends what has gathered when that is
// much. It reports whether the client takes it.
func (w *replyWriter) sendColumn(col []byte, enc tsv.Encoding, end byte) bool {
	for len(col) > columnPiece {
		w.c.Out = tsv.AppendColumn(w.c.Out, col[:columnPiece], enc)
		col = col[columnPiece:]
		if w.c.Flush() != nil {
			return false
		}
	}
	w.c.Out = append(tsv.AppendColumn(w.c.Out, col, enc), end)
	return len(w.c.Out) < columnPiece || w.c.Flush() == nil
}

// jsonTable answers a procedure in JSON. A reply that is too long to be kept is written twice: once
// to learn its length, and once to be sent in pieces.
func (w *replyWriter) jsonTable(p *procedure, o *output, status int) {
	form, sent := p.form(), 0
	if status != statusOK {
		form.Fault = &jsonrows.Fault{Status: status, Code: o.code}
	}
	if form.List == jsonrows.Ranked && o.hold(o.rows.Len()*rankCost) != nil {
		w.noMemory(o.lack)
		return
	}
	first := jsonrows.Writer{Buf: o.json[:0], Full: func(buf []byte) ([]byte, error) {
		if len(buf) < maxUnsent {
			return buf, nil
		}
		sent += len(buf)
		return buf[:0], nil
	}}
	jsonrows.Encode(&first, &o.rows, form)
	o.json = first.Buf
	length := sent + len(first.Buf)
	if w.req.Method == message.HEAD {
		length = noLength
	}
	w.head(status, w.req.KeepAlive, length)
	w.header("Content-Type: ", jsonrows.TypeJSON)
	w.endHead()
	switch {
	case w.req.Method == message.HEAD:
	case sent == 0:
		w.c.Out = append(w.c.Out, first.Buf...)
	default:
		again := jsonrows.Writer{Buf: w.c.Out, Full: w.pass}
		jsonrows.Encode(&again, &o.rows, form)
		w.c.Out = again.Buf
		if again.Err() != nil { // the client is gone, and the length has been sent
			w.req.KeepAlive = false
		}
	}
}

// rankCost is what a row takes that is brought into another order.
const rankCost = 48

// pass sends what a writer of JSON has gathered.
func (w *replyWriter) pass(buf []byte) ([]byte, error) {
	w.c.Out = buf
	err := w.c.Flush()
	return w.c.Out, err
}

// failure returns the body of a reply that is no success, and its type: for a procedure what a
// failed call answers, else a line of text.
func (w *replyWriter) failure(status int, reason string, rpc bool) (kind, body string) {
	switch {
	case w.json:
		return jsonrows.TypeJSON, errorJSON(reason, status)
	case rpc:
		return tsv.TypeTSV, "ERROR\t" + reason + "\n"
	}
	return plainText, reason + "\n"
}

// denial answers a request for which the client has no right.
func (w *replyWriter) denial(denied *access.Denied, rpc, keepAlive bool) {
	kind, text := w.failure(denied.Status(), denied.Error(), rpc)
	w.text(denied.Status(), keepAlive, kind, text)
}

// unconfirmed returns what is sent instead of the reply to the present request, when other servers
// do not confirm what it tells.
func (w *replyWriter) unconfirmed(rpc bool) netio.Instead {
	keep, head, json, browser := w.req.KeepAlive, w.req.Method == message.HEAD, w.json, w.browser
	return func(dst []byte, err error) []byte {
		reason := "DB: " + err.Error()
		as := replyWriter{json: json}
		kind, text := as.failure(statusUnavailable, reason, rpc)
		out, present := w.c.Out, w.browser
		w.c.Out, w.browser = dst, browser
		length := len(text)
		if head {
			text, length = "", noLength
		}
		w.head(statusUnavailable, keep, length)
		if !rpc {
			w.header("X-Kt-Error: ", reason)
		}
		w.header("Content-Type: ", kind)
		w.endHead()
		dst = append(w.c.Out, text...)
		w.c.Out, w.browser = out, present
		return dst
	}
}

// noMemory answers a request for which there is no memory, and ends the connection.
func (w *replyWriter) noMemory(err error) (status int) {
	f := message.FaultOf(err)
	w.refusal(f)
	w.req.KeepAlive = false
	if f == message.TooLarge {
		return statusTooLarge
	}
	return statusUnavailable
}

// refusal answers a request that cannot be read. The connection ends with it. What is no HTTP
// request gets no answer.
func (w *replyWriter) refusal(f message.Fault) {
	status, reason := statusBadRequest, ""
	switch f {
	case message.TooLarge:
		status, reason = statusTooLarge, "request entity too large"
	case message.CutOff:
		reason = "receiving data failed"
	case message.Busy:
		status, reason = statusUnavailable, "no memory for a request of this size now"
	case message.BadChunk:
		reason = "invalid chunk"
	case message.BadLength:
		reason = "conflicting lengths"
	default:
		return
	}
	kind, text := w.failure(status, statusLine(status)+" ("+reason+")", false)
	w.head(status, false, len(text))
	w.header("Content-Type: ", kind)
	w.endHead()
	w.c.Out = append(w.c.Out, text...)
}

// unreached answers a request for which the primary has not been reached, and ends the connection.
func (w *replyWriter) unreached(err error, rpc bool) {
	kind, text := w.failure(statusUnavailable, err.Error(), rpc)
	w.head(statusUnavailable, false, len(text))
	w.header("Content-Type: ", kind)
	w.header("Retry-After: ", retryAfter)
	w.endHead()
	if w.req.Method != message.HEAD {
		w.c.Out = append(w.c.Out, text...)
	}
}

// retryAfter is after how many seconds a client may try again.
const retryAfter = "1"
