package memcache

import (
	"bytes"

	"gotycoon/access"
)

// The opcodes of SASL. Without an access file they are unknown.
const (
	opMechanisms opcode = 0x20
	opAuth       opcode = 0x21
	opStep       opcode = 0x22
)

// mechanism is the only SASL mechanism that is served.
const mechanism = "PLAIN"

// guardBinary decides whether the client may make a request, and serves the requests of SASL. done
// reports that the request has been answered, keep that the connection stays open.
func (c *conn) guardBinary(r *request) (done, keep bool) {
	entered := c.io.Visitor.Enter()
	if isRemote(entered) {
		c.sayBinary(r, &reply{status: statusAuth, value: []byte(entered.Error())})
		return true, false
	}
	switch r.op {
	case opMechanisms:
		c.sayBinary(r, &reply{value: []byte(mechanism)})
		return true, true
	case opAuth:
		c.logInBinary(r)
		return true, true
	case opStep:
		c.sayBinary(r, &reply{status: statusAuth})
		return true, true
	case opQuit, opQuitQ, opVersion:
		return false, true
	}
	if entered != nil {
		c.sayBinary(r, &reply{status: statusAuth})
		return true, true
	}
	if err := c.permitBinary(r); err != nil {
		c.sayBinary(r, &reply{status: statusAuth, value: []byte(err.Error())})
		return true, true
	}
	return false, true
}

// permitBinary returns nil if the client may make a request. Requests that make no sense pass:
// executeBinary answers them.
func (c *conn) permitBinary(r *request) error {
	row, known := r.op.operation()
	v := c.io.Visitor
	switch {
	case !known:
		return nil
	case row.base == opGet:
		return v.Key(access.Read, c.db, r.key)
	case row.base == opGAT, row.base == opIncrement, row.base == opDecrement:
		return v.Key(access.Read|access.Write, c.db, r.key)
	case row.base == opFlush:
		return v.Database(access.Write, c.db)
	case row.base == opStat:
		return v.Database(access.Read, c.db)
	case row.writes:
		return v.Key(access.Write, c.db, r.key)
	}
	return nil
}

// logInBinary serves the mechanism PLAIN: the value is an identity without a meaning here, the
// user, and the password, with zero bytes between them.
func (c *conn) logInBinary(r *request) {
	parts := bytes.SplitN(r.value, []byte{0}, 3)
	if string(r.key) != mechanism || len(parts) != 3 || !c.io.Visitor.Login(c.ctx, string(parts[1]), parts[2]) {
		c.sayBinary(r, &reply{status: statusAuth})
		return
	}
	c.sayBinary(r, &reply{value: []byte("Authenticated")})
}
