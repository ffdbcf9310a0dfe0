package memcache

import (
	"bytes"
	"encoding/base64"
	"errors"

	"gotycoon/access"
)

// The text protocol has no command for credentials. As in memcached, a client logs in with a set
// command for any key, whose value is "USER PASSWORD".

// maxCredentials is the largest value that is read from a client without any right.
const maxCredentials = 2048

const (
	replyUnauthenticated = "CLIENT_ERROR unauthenticated"
	replyAuthFailure     = "CLIENT_ERROR authentication failure"
)

// right says what a command needs.
type right struct {
	rights access.Rights
	server bool // for the whole server
	keys   int  // index of the (first) word that is a key; 0: the whole server or database, or nothing
	many   bool
	size   int // index of the word with the length of a data block; 0: no block
}

// both are the rights to show a value and to change something.
const both = access.Read | access.Write

// rightOf returns what the command in words needs. A command that shows a value and changes
// something needs both rights. So do the commands that take messages of a queue: nobody else gets a
// taken message, and a message that is given back has lost its expiration time.
func (o owner) rightOf() right {
	word := string(o.words[0])
	switch word {
	case "set", "add", "replace", "append", "prepend", "cas":
		return right{rights: access.Write, keys: 1, size: 4}
	case "ms":
		return right{rights: access.Write, keys: 1, size: 2}
	case "delete", "touch", "md":
		return right{rights: access.Write, keys: 1}
	case "incr", "decr", "ma":
		return right{rights: both, keys: 1}
	case "gat", "gats":
		return right{rights: both, keys: 2, many: true}
	case "get", "gets":
		return right{rights: o.toFetch(), keys: 1, many: true}
	case "mg":
		return right{rights: o.toFetch(), keys: 1}
	case "me":
		return right{rights: access.Read, keys: 1}
	case "flush_all":
		return right{rights: access.Write}
	case "stats":
		if o.modern && len(o.words) > 1 && string(o.words[1]) == familyReset {
			return right{rights: access.Admin, server: true}
		}
		return right{rights: access.Read}
	}
	return right{}
}

// toFetch returns the rights that a client needs to get an item, or to take a message of a queue.
func (c *conn) toFetch() access.Rights {
	if c.s.queues != nil {
		return both
	}
	return access.Read
}

// owner is a connection in its role as owed.Rights: an update that has waited asks whether its
// client still has the right. It also decides which commands the client may give.
type owner struct{ *conn }

// Current implements owed.Rights.
func (o owner) Current() bool { return o.asked.denied == nil && o.io.Visitor.Current() }

// Renew implements owed.Rights. Once refused, the request stays refused.
func (o owner) Renew() error {
	if o.asked.denied == nil {
		o.asked.denied = o.again()
	}
	return o.asked.denied
}

func (o owner) again() error {
	if err := o.io.Visitor.Enter(); err != nil {
		return err
	}
	if o.asked.binary {
		return (&exchange{o.conn, o.asked.request}).permit()
	}
	return o.permit(string(o.words[0]), o.rightOf())
}

// guard decides whether the client may give the command in words. done reports that the command has
// been answered, keep that the connection stays open.
func (o owner) guard() (done, keep bool) {
	word := string(o.words[0])
	row, known := o.commands[word]
	v := o.io.Visitor
	entered := v.Enter()
	switch {
	case isRemote(entered):
		o.say("SERVER_ERROR " + entered.Error())
		return true, false
	case word == "quit":
		return false, true
	// The command itself answers that it is unknown or has too few words.
	case known && len(o.words) < row.least || !known && entered == nil:
		return false, true
	case !known:
		o.say(replyUnauthenticated)
		return true, true
	}
	need := o.rightOf()
	err := entered
	if err == nil {
		err = o.permit(word, need)
	}
	switch {
	case err == nil:
		return false, true
	case word == "set" && isUnknown(err) && o.s.opts.Forward.Away() && o.moveText():
		return true, false
	case word == "set" && isUnknown(err):
		return true, o.logIn(leadingInt(o.words[need.size]))
	}
	return true, o.refuse(need, err, entered == nil)
}

func isRemote(err error) bool {
	denied, ok := errors.AsType[*access.Denied](err)
	return ok && denied.Remote
}

// isUnknown reports whether credentials may help. They do not help a client whose certificate has a
// name.
func isUnknown(err error) bool {
	denied, ok := errors.AsType[*access.Denied](err)
	return ok && denied.Unknown
}

// permit returns nil if the client may give a command with these keys.
func (o owner) permit(word string, need right) error {
	v := o.io.Visitor
	switch {
	case need.rights == 0:
		return nil
	case need.server:
		return v.Server(need.rights)
	case need.keys == 0:
		return v.Database(need.rights, o.db)
	case word[0] == 'm':
		return o.permitMeta(word, need)
	}
	keys := o.words[need.keys:]
	if !need.many {
		keys = keys[:1]
	}
	for _, key := range keys {
		if err := v.Key(need.rights, o.db, key); err != nil {
			return err
		}
	}
	return nil
}

// permitMeta is permit for a meta command. Its key may be base64, and the flags N and T make a get
// change the item.
func (o owner) permitMeta(word string, need right) error {
	key := o.words[1]
	for _, flag := range o.words[2:] {
		switch {
		case flag[0] == 'b':
			text, err := base64.StdEncoding.DecodeString(string(o.words[1]))
			if err != nil { // the command itself reports the error
				return nil
			}
			key = text
		case word == "mg" && (flag[0] == 'N' || flag[0] == 'T'):
			need.rights |= access.Write
		}
	}
	return o.io.Visitor.Key(need.rights, o.db, key)
}

// refuse answers a command that is refused, after its data block. It reports whether the connection
// stays open.
func (o owner) refuse(need right, reason error, entered bool) bool {
	if need.size > 0 {
		size := leadingInt(o.words[need.size])
		if !entered && size > maxCredentials {
			o.say(replyUnauthenticated)
			return false
		}
		if _, _, ok := o.block(size); !ok {
			return false
		}
	}
	switch {
	case string(o.words[len(o.words)-1]) == "noreply":
	case !entered:
		o.say(replyUnauthenticated)
	default:
		o.say("CLIENT_ERROR " + reason.Error())
	}
	return true
}

// logIn reads credentials from the data block of a set. It reports whether the connection stays
// open.
func (o owner) logIn(size int64) bool {
	if size > maxCredentials {
		o.say(replyAuthFailure)
		return false
	}
	text, _, ok := o.block(size)
	if !ok {
		return false
	}
	user, password, _ := bytes.Cut(text, []byte{' '})
	if o.io.Visitor.Login(o.ctx, string(user), password) {
		o.say(replyStored)
		return true
	}
	o.say(replyAuthFailure)
	return true
}

// mechanism is the only SASL mechanism that is served.
const mechanism = "PLAIN"

// guard decides whether the client may make a request, and serves the requests of SASL. done
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

// permit returns nil if the client may make a request. Requests that make no sense pass:
// execute answers them.
func (x *exchange) permit() error {
	row, known := x.r.op.operation()
	v := x.io.Visitor
	switch {
	case !known:
		return nil
	case row.base == opGet:
		return v.Key(x.toFetch(), x.db, x.r.key)
	case row.base == opGAT, row.base == opIncrement, row.base == opDecrement:
		return v.Key(both, x.db, x.r.key)
	case row.base == opFlush:
		return v.Database(access.Write, x.db)
	case row.base == opStat && string(x.r.key) == familyReset:
		return v.Server(access.Admin)
	case row.base == opStat:
		return v.Database(access.Read, x.db)
	case row.writes:
		return v.Key(access.Write, x.db, x.r.key)
	}
	return nil
}

// logIn serves the mechanism PLAIN: the value is an identity without a meaning here, the
// user, and the password, with zero bytes between them.
func (x *exchange) logIn() {
	parts := bytes.SplitN(x.r.value, []byte{0}, 3)
	if string(x.r.key) != mechanism || len(parts) != 3 || !x.io.Visitor.Login(x.ctx, string(parts[1]), parts[2]) {
		x.say(&reply{status: statusAuth})
		return
	}
	x.say(&reply{value: []byte("Authenticated")})
}
