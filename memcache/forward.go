package memcache

import (
	"slices"

	"gotycoon/client/wire/frame"
)

// A server that is not the primary moves a connection to the primary at the first command that
// updates, see package internal/forward. So it does with logins, since the primary has to know who
// the client is, and with requests for the unique numbers of items: each server has numbers of its
// own.

// foreignUnique is the number of every item in a binary reply of a server that is not the primary.
// A reply to get always has a number, though few clients use it. No item has this one, so a cas
// fails as if somebody had changed the item; the cas has moved the connection, and the client's
// next get is answered by the primary.
const foreignUnique = 1 << 63

// belongs reports whether the command in words belongs to the primary.
func (c *conn) belongs(row *command) bool {
	primarys := row.writes
	switch row.name {
	case "gets":
		primarys = c.modern || c.s.queues != nil
	case "get":
		primarys = c.s.queues != nil
	case "mg":
		primarys = slices.ContainsFunc(c.words[2:], func(flag []byte) bool { return has("cNT", flag[0]) })
	}
	return primarys && c.s.opts.Forward.Away()
}

// moveText moves the connection with the line that has been taken. It reports false if the command
// is to be served here after all.
func (c *conn) moveText() (over bool) {
	taken := c.line
	if len(taken) < c.longest() { // a longer line has been cut without its end
		taken = append(taken, "\r\n"...)
	}
	over, err := c.s.opts.Forward.Move(c.io, frame.MemberMemcached, taken)
	if err != nil {
		c.failed = true
		if !c.quietAt(len(c.words) - 1) {
			c.say("SERVER_ERROR " + err.Error())
		}
	}
	return over
}

// logsIn reports whether the request is one of a login.
func (x *exchange) logsIn() bool { return x.r.op == opAuth || x.r.op == opStep }

// belongs reports whether the request belongs to the primary.
func (x *exchange) belongs() bool {
	row, known := x.r.op.operation()
	return (x.logsIn() || row.writes || row.base == opGet && known && x.s.queues != nil) && x.s.opts.Forward.Away()
}

// move moves the connection with the request that has been taken, all of message. It reports false
// if the request is to be served here after all.
func (x *exchange) move(message []byte) (over bool) {
	over, err := x.s.opts.Forward.Move(x.io, frame.MemberMemcached, message)
	if err != nil {
		x.failed = true
		x.say(&reply{status: statusBusy, value: []byte(err.Error())})
	}
	return over
}
