package lock

import (
	"errors"

	"gotycoon/access"
)

// The protocol has no credentials: rules apply by the client's address and its certificate.

// wordDenied begins the reply to a command that is refused.
const wordDenied = "ACCESS_DENIED"

// permit returns nil if the client may give a command. Ending another client's request needs the
// right admin.
func (c *conn) permit(cmd *command) error {
	need := access.Read
	switch cmd.verb {
	case verbLock, verbLockFenced, verbRelease, verbRenew:
		need = access.Write
	case verbCancel:
		if need = access.Write; cmd.n > 1 {
			need = access.Admin
		}
	case verbQuit:
		return nil
	}
	return c.in.Visitor.Service(need, access.Lock)
}

// refuse answers a command that is refused: in few words, as other refusals are (reply.go). A peer
// on another machine that the server does not serve at all gets the whole reason, and its
// connection ends.
func (c *conn) refuse(reason error) error {
	if denied, ok := errors.AsType[*access.Denied](reason); ok && denied.Remote {
		c.say(wordDenied + ": " + denied.Reason)
		return errQuit
	}
	c.say(wordDenied + ": no such right")
	return nil
}

// watch closes the connection when a new access file takes away its right to lock. Otherwise a
// waiting request could still be granted, and a holder could not release its lock. The first lock
// command that is permitted calls it.
func (c *conn) watch() {
	if c.unwatch == nil {
		c.unwatch = c.in.Visitor.WhileService(access.Write, access.Lock, c.in.Cut)
	}
}
