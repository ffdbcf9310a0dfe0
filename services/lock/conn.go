package lock

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"gotycoon/internal/netio"
	"gotycoon/internal/rawio"
)

const (
	readSize  = 16 << 10 // size of a read buffer: room for the longest line
	flushSize = 64 << 10 // replies to pipelined commands are sent when they reach this size
	keepLines = 4 << 10  // larger buffers for lines are dropped when the connection is idle
)

// errQuit is a reason for the end of a connection that is no failure.
var errQuit = errors.New("the client has quit")

// conn is one client connection. Its own goroutine reads and answers commands: the goroutine that
// serves it, which is another one after each rest in a loop. Other goroutines use only session and
// the fields that session.mu protects (outbox.go).
type conn struct {
	session
	server *Server
	in     *netio.Conn
	socket net.Conn
	raw    syscall.RawConn // nil when the socket has no descriptor, for example a pipe
	step   step
	served bool  // commands have been served here
	skips  bool  // the rest of a line that is too long is being dropped
	alone  bool  // no other goroutine writes to the socket, see outbox.go
	reason error // for the end of the connection

	unstop  func() bool
	unwatch func() // ends watch; nil: watch has not been called

	// Protected by session.mu. outbox.go has a table of busy and writing.
	busy    bool      // the goroutine will send lines before it waits
	writing bool      // another goroutine writes to the socket
	written sync.Cond // writing has become false
	spare   []byte    // the second buffer for lines, while the first is written

	attempt attempt // belongs to whoever has set writing
}

// attempt is a write that does not wait.
type attempt struct {
	out      []byte
	n        int
	errno    syscall.Errno
	onSocket func(fd uintptr) // try as a value, made once
}

func (a *attempt) try(fd uintptr) { a.n, a.errno = rawio.Write(fd, a.out) }

// say adds a line without counts and key to the replies.
func (c *conn) say(line string) {
	c.session.say(func(lines []byte) []byte { return append(append(lines, line...), '\n') })
}

// accepts reports whether there is no refusal, and says the refusal if there is one.
func (c *conn) accepts(refusal string) bool {
	if refusal != "" {
		c.say(refusal)
	}
	return refusal == ""
}
