package memcache

import (
	"bytes"
	"encoding/binary"
	"errors"

	"gotycoon/access"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/internal/netio"
)

// A message of the binary protocol, all numbers big-endian:
//
//	offset size
//	     0    1  magic: 0x80 request, 0x81 reply
//	     1    1  opcode
//	     2    2  length of the key
//	     4    1  length of the extras
//	     5    1  data type, 0
//	     6    2  request: reserved; reply: status
//	     8    4  length of the body: extras, key, value
//	    12    4  opaque, copied into the reply
//	    16    8  version (cas)
//	    24       the body
const (
	requestMagic = 0x80
	replyMagic   = 0x81
	headerSize   = 24
)

// status is the result of a request.
type status uint16

const (
	statusOK        status = 0x00
	statusNotFound  status = 0x01
	statusExists    status = 0x02
	statusTooLarge  status = 0x03
	statusInvalid   status = 0x04
	statusNotStored status = 0x05
	statusNotNumber status = 0x06
	statusDenied    status = 0x24
	statusAuth      status = 0x20
	statusUnknown   status = 0x81
	statusNoMemory  status = 0x82
	statusInternal  status = 0x84
)

// text is the value of a reply that reports an error.
func (s status) text() string {
	switch s {
	case statusNotFound:
		return "Not found"
	case statusExists:
		return "Data exists for key."
	case statusTooLarge:
		return "Too large."
	case statusInvalid:
		return "Invalid arguments"
	case statusNotStored:
		return "Not stored."
	case statusNotNumber:
		return "Non-numeric server-side value for incr or decr"
	case statusNoMemory:
		return "Out of memory"
	case statusDenied:
		return "The server is read-only"
	case statusAuth:
		return "Auth failure."
	case statusUnknown:
		return "Unknown command"
	}
	return "Internal error"
}

// request is a received message. Its slices are valid until the next read.
type request struct {
	op                 opcode
	opaque             [4]byte
	unique             uint64
	extras, key, value []byte
	room               []byte // of a large value, as in change
}

// exchange is one request of the binary protocol, and the connection that it came on.
type exchange struct {
	*conn
	r request
}

// reply is what is sent for a request.
type reply struct {
	status             status
	unique             uint64
	extras, key, value []byte
}

// serveBinary serves one message. It reports whether the connection stays open.
func (c *conn) serveBinary() bool {
	c.quiet = false
	if !c.need(headerSize) {
		return false
	}
	head := [headerSize]byte(c.io.Buffered())
	x := exchange{c, request{op: opcode(head[1]), opaque: [4]byte(head[12:])}}
	body := int64(binary.BigEndian.Uint32(head[8:]))
	if body > maxRequest-headerSize || c.io.Visitor != nil && body > maxCredentials && c.io.Visitor.Enter() != nil {
		x.say(&reply{status: statusTooLarge})
		return false
	}
	if err := c.io.Need(headerSize + int(body)); err != nil {
		if errors.Is(err, netio.ErrBusy) || errors.Is(err, netio.ErrTooLarge) {
			x.say(&reply{status: statusNoMemory})
		}
		return false
	}
	message := c.io.Buffered()[:headerSize+body]
	room := c.io.Room(len(message), 0, flagBytes)
	c.io.Advance(len(message))
	r, ok := parseRequest(message)
	x.r = r
	if !ok {
		x.say(&reply{status: statusInvalid})
		return false
	}
	if len(r.value) >= largeValue && room != nil {
		x.r.key = bytes.Clone(r.key) // its end is in the way
		x.r.room = room[len(message)-len(r.value)-record.Headroom:]
	}
	keep := x.execute()
	x.measure()
	return keep
}

// parseRequest splits a message. ok is false if its lengths contradict each other.
func parseRequest(message []byte) (r request, ok bool) {
	r = request{op: opcode(message[1]), opaque: [4]byte(message[12:16]), unique: binary.BigEndian.Uint64(message[16:])}
	keyEnd := int(message[4]) + int(binary.BigEndian.Uint16(message[2:]))
	body := message[headerSize:]
	if keyEnd > len(body) {
		return r, false
	}
	r.extras, r.key, r.value = body[:message[4]], body[message[4]:keyEnd], body[keyEnd:]
	return r, true
}

// say adds a reply. It reports whether the connection stays.
func (x *exchange) say(a *reply) bool {
	if a.status != statusOK {
		a.unique = 0
		if a.value == nil {
			a.value = []byte(a.status.text())
		}
	}
	out := append(x.io.Out, replyMagic, byte(x.r.op))
	out = binary.BigEndian.AppendUint16(out, uint16(len(a.key)))
	out = append(out, byte(len(a.extras)), 0)
	out = binary.BigEndian.AppendUint16(out, uint16(a.status))
	out = binary.BigEndian.AppendUint32(out, uint32(len(a.extras)+len(a.key)+len(a.value)))
	out = append(out, x.r.opaque[:]...)
	out = binary.BigEndian.AppendUint64(out, a.unique)
	out = append(out, a.extras...)
	x.io.Out = append(out, a.key...)
	return x.sayData(a.value)
}

// statusOf maps the error of an operation to a status.
func (x *exchange) statusOf(err error) status {
	switch {
	case err == nil:
		return statusOK
	case errors.Is(err, dberr.ErrNoRecord):
		return statusNotFound
	case errors.Is(err, dberr.ErrDuplicate), errors.Is(err, errChanged):
		return statusExists
	case errors.Is(err, errNotNumber):
		return statusNotNumber
	case dberr.Refused(err), errors.Is(err, netio.ErrBusy), errors.Is(err, netio.ErrTooLarge):
		return statusNoMemory
	}
	x.failed = true
	if _, denied := errors.AsType[*access.Denied](err); denied {
		return statusAuth
	}
	x.s.logFailure(err)
	if errors.Is(err, dberr.ErrReadOnly) {
		return statusDenied
	}
	return statusInternal
}

// answer sends the result of a request. A quiet request gets no reply if it has succeeded.
func (x *exchange) answer(a *reply) {
	if x.quiet && a.status == statusOK {
		return
	}
	x.say(a)
}
