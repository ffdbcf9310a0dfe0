package forward

import (
	"io"
	"net"
	"sync"
	"time"

	"gotycoon/internal/netio"
)

// drainTime is how long the primary may take for the rest of its answers when a moved connection
// ends.
const drainTime = time.Second

// moved is a connection that has moved to the primary.
type moved struct {
	primary net.Conn
	addr    string // of the primary
	patient bool   // silence does not end the connection

	mu     sync.Mutex   // protects the fields below
	client net.Conn     // nil until begin
	socket *net.TCPConn // of client
	ended  bool

	// What the socket had moved when Look saw it last, and when it was something new.
	received, acked uint64
	active          time.Time
	asking          bool // the client has moved something last: an answer may be under way
}

// begin notes the client's end. The connection may have been ended already, while the first request
// was sent.
func (m *moved) begin(client net.Conn, timeout time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client = client
	switch c := client.(type) {
	case *net.TCPConn:
		m.socket = c
	case interface{ TCP() *net.TCPConn }:
		m.socket = c.TCP()
	}
	if m.socket != nil && timeout > 0 {
		// A write deadline cannot do it: a copy by splice(2) that misses it has lost what is in its
		// pipe, even if the client was slow only.
		netio.LimitSilence(m.socket, timeout)
	}
	if m.ended {
		m.limit()
	}
}

// copy moves bytes in both directions until the primary has ended its direction, or the client
// takes no more.
func (m *moved) copy() {
	var up sync.WaitGroup
	up.Go(m.copyUp)
	_, _ = io.Copy(m.client, m.primary) // whatever it is, the connection is over
	_ = m.client.SetReadDeadline(time.Unix(1, 0))
	_ = m.primary.SetWriteDeadline(time.Unix(1, 0))
	up.Wait()
}

// copyUp moves requests. At the end it tells the primary that no more will come, and the primary
// ends its own direction when it has answered what it has. A client that has ended its direction in
// order may wait for its answers as long as it likes; otherwise they have to come soon.
func (m *moved) copyUp() {
	_, err := io.Copy(m.primary, m.client)
	if half, ok := m.primary.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // fails if the primary has gone, which copy notices
	}
	if err != nil {
		_ = m.primary.SetReadDeadline(time.Now().Add(drainTime))
	}
}

// end has copy end: no further request is taken from the client, and the primary has a moment to
// answer those that it has received. Any goroutine may call end.
func (m *moved) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ended {
		m.ended = true
		m.limit()
	}
}

// limit sets the deadlines of a connection that ends. The caller holds mu.
func (m *moved) limit() {
	soon := time.Now().Add(drainTime)
	_ = m.primary.SetDeadline(soon) // all fail for closed sockets only
	if m.client != nil {
		_ = m.client.SetReadDeadline(time.Unix(1, 0))
		_ = m.client.SetWriteDeadline(soon)
	}
}

// idleSince reports whether the client has had its answers and has been silent for longer than
// limit. The kernel moves the bytes, so only its counters tell.
func (m *moved) idleSince(now time.Time, limit time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.patient || limit <= 0 || m.socket == nil {
		return false
	}
	received, acked, ok := traffic(m.socket)
	switch {
	case !ok:
		return false
	case acked != m.acked:
		m.asking = false
	case received != m.received:
		m.asking = true
	default:
		return !m.asking && now.Sub(m.active) > limit
	}
	m.received, m.acked, m.active = received, acked, now
	return false
}
