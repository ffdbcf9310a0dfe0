package memcache

import (
	"encoding/binary"
	"errors"

	"gotycoon/access"
	"gotycoon/db/dberr"
	"gotycoon/internal/netio"
)

// exchange is one request of the binary protocol, and the connection that it came on.
type exchange struct {
	*conn
	r request
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

// unconfirmedBinary returns what is sent instead of the reply to a request, also to a quiet one,
// when other servers do not confirm what the reply tells.
func unconfirmedBinary(op opcode, opaque [4]byte) netio.Instead {
	return func(dst []byte, err error) []byte {
		text := reason(err)
		dst = append(dst, replyMagic, byte(op), 0, 0, 0, 0)
		dst = binary.BigEndian.AppendUint16(dst, uint16(statusTemporary))
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(text)))
		dst = append(dst, opaque[:]...)
		dst = binary.BigEndian.AppendUint64(dst, 0)
		return append(dst, text...)
	}
}

// answer sends the result of a request. A quiet request gets no reply if it has succeeded.
func (x *exchange) answer(a *reply) {
	if x.quiet && a.status == statusOK {
		return
	}
	x.say(a)
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
	case dberr.Unavailable(err):
		return statusTemporary
	}
	x.failed = true
	if _, denied := errors.AsType[*access.Denied](err); denied {
		return statusAuth
	}
	if !dberr.Expected(err) {
		x.s.logFailure(err)
	}
	if errors.Is(err, dberr.ErrReadOnly) {
		return statusDenied
	}
	return statusInternal
}
