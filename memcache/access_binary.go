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
func (x *exchange) guard() (done, keep bool) {
	entered := x.io.Visitor.Enter()
	if isRemote(entered) {
		x.say(&reply{status: statusAuth, value: []byte(entered.Error())})
		return true, false
	}
	switch x.r.op {
	case opMechanisms:
		x.say(&reply{value: []byte(mechanism)})
		return true, true
	case opAuth:
		x.logIn()
		return true, true
	case opStep:
		x.say(&reply{status: statusAuth})
		return true, true
	case opQuit, opQuitQ, opVersion:
		return false, true
	}
	if entered != nil {
		x.say(&reply{status: statusAuth})
		return true, true
	}
	if err := x.permit(); err != nil {
		x.say(&reply{status: statusAuth, value: []byte(err.Error())})
		return true, true
	}
	return false, true
}

// permitBinary returns nil if the client may make a request. Requests that make no sense pass:
// executeBinary answers them.
func (x *exchange) permit() error {
	row, known := x.r.op.operation()
	v := x.io.Visitor
	switch {
	case !known:
		return nil
	case row.base == opGet:
		return v.Key(access.Read, x.db, x.r.key)
	case row.base == opGAT, row.base == opIncrement, row.base == opDecrement:
		return v.Key(access.Read|access.Write, x.db, x.r.key)
	case row.base == opFlush:
		return v.Database(access.Write, x.db)
	case row.base == opStat:
		return v.Database(access.Read, x.db)
	case row.writes:
		return v.Key(access.Write, x.db, x.r.key)
	}
	return nil
}

// logInBinary serves the mechanism PLAIN: the value is an identity without a meaning here, the
// user, and the password, with zero bytes between them.
func (x *exchange) logIn() {
	parts := bytes.SplitN(x.r.value, []byte{0}, 3)
	if string(x.r.key) != mechanism || len(parts) != 3 || !x.io.Visitor.Login(x.ctx, string(parts[1]), parts[2]) {
		x.say(&reply{status: statusAuth})
		return
	}
	x.say(&reply{value: []byte("Authenticated")})
}
