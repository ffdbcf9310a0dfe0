package replication

import (
	"net"
	"time"

	"gotycoon/db"
)

const (
	// intakeSize is the size of the read buffer. What one read brings becomes one batch or two, and
	// a batch costs a write to the log, a wake-up and a look at the clock. A buffer of 16 KiB makes
	// batches of 115 records of 100 bytes: a follower that catches up into memory then needs 14
	// percent more processor time.
	intakeSize = 256 << 10
	// intakeKept is the largest buffer that is kept when a large message has been taken.
	intakeKept = 1 << 20
)

// intake is the follower's end of a connection: the bytes that have come and are not yet used, and
// the answers that leave after the updates in front of them are durable.
//
// It is no netio.Conn, since a follower has one master: it can afford a large buffer and needs no
// account of its memory.
type intake struct {
	socket net.Conn
	limit  time.Duration // of one wait for bytes, or for room to send
	buf    []byte
	r, w   int        // unread bytes are buf[r:w]
	out    []byte     // not yet sent
	owed   db.Pending // updates that out acknowledges to a master: of this server's log only (Local)
}

// buffered returns the bytes read but not yet used. They are valid until the next fill.
func (in *intake) buffered() []byte { return in.buf[in.r:in.w] }

// advance marks the first n buffered bytes as used.
func (in *intake) advance(n int) { in.r += n }

// fill sends out, and then reads at least one more byte.
func (in *intake) fill() error {
	if err := in.flush(); err != nil {
		return err
	}
	in.makeRoom()
	if err := in.socket.SetReadDeadline(time.Now().Add(in.limit)); err != nil {
		return err
	}
	n, err := in.socket.Read(in.buf[in.w:])
	in.w += n
	if n > 0 {
		return nil // the next read returns the error again
	}
	return err
}

// makeRoom makes sure that there is room behind the unread bytes. A buffer doubles when it is full,
// so a master that announces a large message and sends little makes this server hold little.
func (in *intake) makeRoom() {
	unread := in.buffered()
	switch {
	case len(unread) == len(in.buf):
		in.buf = make([]byte, max(2*len(in.buf), intakeSize))
	case len(in.buf) > intakeKept && len(unread) < intakeSize:
		in.buf = make([]byte, intakeSize)
	case in.r == 0:
		return
	}
	in.r, in.w = 0, copy(in.buf, unread)
}

// flush waits until the updates that out acknowledges are durable, and sends out. If they cannot be
// made durable, nothing is sent.
func (in *intake) flush() error {
	err := in.owed.Wait()
	if err == nil && len(in.out) > 0 {
		err = in.socket.SetWriteDeadline(time.Now().Add(in.limit))
		if err == nil {
			_, err = in.socket.Write(in.out)
		}
	}
	in.out = in.out[:0]
	return err
}
