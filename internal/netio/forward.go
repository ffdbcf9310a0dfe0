package netio

import (
	"time"

	"gotycoon/client/wire/frame"
)

// Forward passes connections on to the primary, on a server that is not the primary: package
// internal/forward. It is here for the protocols, which need not know how. A nil Forward belongs to
// a server that serves all requests itself.
type Forward struct{ Mover }

// Mover is what a protocol has to know of forwarding.
type Mover interface {
	// Away reports whether updates belong to another server.
	Away() bool
	// Behind reports whether updates belong to another server, and this server is further behind
	// than limit.
	Behind(limit time.Duration) bool
	// Move moves a connection with its unread bytes to the primary. taken are bytes of the request
	// that have been taken from the connection's buffer already. If over is true, the connection is
	// over, or there is an error: then nothing has been done, and the caller answers with the error
	// and closes the connection. Otherwise this server has become the primary: the request is to be
	// served here.
	Move(c *Conn, kind frame.MemberKind, taken []byte) (over bool, err error)
}

// Away reports whether updates belong to another server.
func (f *Forward) Away() bool { return f != nil && f.Mover.Away() }
