package httpapi

import (
	"strconv"

	"gotycoon/httpapi/message"
	"gotycoon/httpapi/tsv"
)

// Status codes of the protocol (4.4, 11).
const (
	statusOK             = 200
	statusCreated        = 201
	statusNoContent      = 204
	statusBadRequest     = 400
	statusUnauthorized   = 401
	statusForbidden      = 403
	statusNotFound       = 404
	statusTooLarge       = 413
	statusLogical        = 450
	statusInternal       = 500
	statusNotImplemented = 501
	statusUnavailable    = 503
	statusNoSpace        = 507

	// statusBroken means that the connection broke and nothing was answered.
	statusBroken = 0
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

// serverName is what clients of Kyoto Tycoon look for.
const serverName = "KyotoTycoon/0.9.56b"

// noLength leaves the Content-Length out.
const noLength = -1

// appendHead appends the status line and the headers that every reply has (3.6). The caller appends its own
// headers, in the order of their names, and the empty line.
func (s *Session) appendHead(status int, keepAlive bool, length int) {
	out := append(s.c.Out, replyOpening...)
	out = append(out, statusLine(status)...)
	out = append(out, "\r\nServer: "+serverName+"\r\nDate: "...)
	out = append(out, s.h.date.text(s.h.opts.Now())...)
	if !keepAlive {
		out = append(out, "\r\nConnection: close"...)
	}
	if length != noLength {
		out = append(out, "\r\nContent-Length: "...)
		out = strconv.AppendInt(out, int64(length), 10)
	}
	s.c.Out = append(out, crlf...)
}

// appendHeader appends one header. Text from the request cannot break out of it: lines have no line ends.
func (s *Session) appendHeader(name, value string) {
	s.c.Out = append(append(append(s.c.Out, name...), value...), crlf...)
}

func (s *Session) endHead() { s.c.Out = append(s.c.Out, crlf...) }

// replyTable answers a procedure with its output rows.
func (s *Session) replyTable(status int) {
	enc := s.out.Choose()
	length := noLength
	if s.req.Method != message.HEAD {
		length = s.out.EncodedLen(enc)
	}
	s.appendHead(status, s.req.KeepAlive, length)
	s.appendHeader("Content-Type: ", enc.ContentType())
	s.endHead()
	switch {
	case s.req.Method == message.HEAD:
	case length > maxUnsent:
		s.sendTable(enc)
	default:
		s.c.Out = s.out.AppendEncoded(s.c.Out, enc)
	}
}

// columnPiece is how much of a column is encoded at once, a multiple of the three bytes of which Base64 makes four letters.
const columnPiece = 48 << 10

// sendTable sends the output rows while it encodes them, so that a large reply never is in memory as a whole. Its length has been sent already. When
// the client is gone, so is the connection.
func (s *Session) sendTable(enc tsv.Encoding) {
	s.out.SortEncoded(enc)
	for row := range s.out.All() {
		if !s.sendColumn(row.Name, enc, '\t') || !s.sendColumn(row.Value, enc, '\n') {
			s.req.KeepAlive = false
			return
		}
	}
}

// sendColumn appends a column and the byte behind it, and sends what has gathered when that is much. It reports whether the client
// takes it.
func (s *Session) sendColumn(col []byte, enc tsv.Encoding, end byte) bool {
	for len(col) > columnPiece {
		s.c.Out = tsv.AppendColumn(s.c.Out, col[:columnPiece], enc)
		col = col[columnPiece:]
		if s.c.Flush() != nil {
			return false
		}
	}
	s.c.Out = append(tsv.AppendColumn(s.c.Out, col, enc), end)
	return len(s.c.Out) < columnPiece || s.c.Flush() == nil
}

// refuseMemory answers a request for which there is no memory, and ends the connection.
func (s *Session) refuseMemory(err error) (status int) {
	f := message.FaultOf(err)
	s.refuse(f)
	s.req.KeepAlive = false
	if f == message.TooLarge {
		return statusTooLarge
	}
	return statusUnavailable
}

// refuse answers a request that cannot be served. The connection ends with it (3.5).
func (s *Session) refuse(f message.Fault) {
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
	text := statusLine(status) + " (" + reason + ")\n"
	s.appendHead(status, false, len(text))
	s.appendHeader("Content-Type: ", "text/plain")
	s.endHead()
	s.c.Out = append(s.c.Out, text...)
}
