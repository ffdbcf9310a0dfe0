package jesync

import (
	"errors"

	"gotycoon/access"
)

// The protocol has no credentials: what counts is where a client is, and its certificate.

// wordDenied begins the reply to a command that is refused.
const wordDenied = "ACCESS_DENIED"

// permit returns nil when the client may give a command. Who ends the requests of others needs the right to do everything.
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

// refuse answers a command that is refused: in few words, as the other refusals (reply.go). Who will not be answered at all is told
// why at length, and the connection ends.
func (c *conn) refuse(reason error) error {
	if denied, ok := errors.AsType[*access.Denied](reason); ok && denied.Remote {
		c.say(wordDenied + ": " + denied.Reason)
		return errQuit
	}
	c.say(wordDenied + ": no such right")
	return nil
}

// watch has the connection ended when its right to lock is taken away while it holds locks or waits for them: a request that waits must not
// be granted then, and who may not release a lock must not keep it. It begins with the first lock command that is let in.
func (c *conn) watch() {
	if c.unwatch == nil {
		c.unwatch = c.in.Visitor.WhileService(access.Write, access.Lock, c.in.Cut)
	}
}
