package netio

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bare is an accepted connection that Go's poller does not know: a Loop watches it. Nobody can wait
// for it as it is. Whoever calls a method of net.Conn that may wait turns it into a connection of
// package net first, and it stays one.
//
// A Bare belongs to the goroutine that serves it. Any goroutine may call Cut, LocalAddr, RemoteAddr
// and the Control of SyscallConn.
type Bare struct {
	local, remote net.Addr
	unwatch       func() // has the loop forget the descriptor; nil: no loop knows it

	mu  sync.Mutex
	fd  int          // -1: closed, or passed on to tcp
	tcp *net.TCPConn // what the connection has become; nil: it is still bare
}

// TCP turns the connection into one of package net and returns that. It fails when the process has
// no descriptor left.
func (b *Bare) TCP() (*net.TCPConn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.tcp != nil:
		return b.tcp, nil
	case b.fd < 0:
		return nil, net.ErrClosed
	}
	b.leaveLoop()
	file := os.NewFile(uintptr(b.fd), "client")
	b.fd = -1
	defer file.Close() // c has a duplicate
	c, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	b.tcp = c.(*net.TCPConn)
	return b.tcp, nil
}

// leaveLoop has the loop forget the descriptor. The caller holds mu.
func (b *Bare) leaveLoop() {
	if b.unwatch != nil {
		b.unwatch()
		b.unwatch = nil
	}
}

// Cut ends both directions of the connection, so that whoever serves it closes it.
func (b *Bare) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.tcp != nil:
		b.tcp.Close()
	case b.fd >= 0:
		_ = unix.Shutdown(b.fd, unix.SHUT_RDWR) // fails if the client has ended the connection
	}
}

// Close implements net.Conn, for the goroutine that serves the connection.
func (b *Bare) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.tcp != nil:
		return b.tcp.Close()
	case b.fd < 0:
		return net.ErrClosed
	}
	b.leaveLoop()
	fd := b.fd
	b.fd = -1
	return os.NewSyscallError("close", unix.Close(fd))
}

// CloseWrite ends the direction to the client.
func (b *Bare) CloseWrite() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.tcp != nil:
		return b.tcp.CloseWrite()
	case b.fd < 0:
		return net.ErrClosed
	}
	return os.NewSyscallError("shutdown", unix.Shutdown(b.fd, unix.SHUT_WR))
}

// Read implements net.Conn.
func (b *Bare) Read(p []byte) (int, error) {
	c, err := b.TCP()
	if err != nil {
		return 0, err
	}
	return c.Read(p)
}

// Write implements net.Conn.
func (b *Bare) Write(p []byte) (int, error) {
	c, err := b.TCP()
	if err != nil {
		return 0, err
	}
	return c.Write(p)
}

// LocalAddr implements net.Conn.
func (b *Bare) LocalAddr() net.Addr { return b.local }

// RemoteAddr implements net.Conn.
func (b *Bare) RemoteAddr() net.Addr { return b.remote }

// SetDeadline implements net.Conn.
func (b *Bare) SetDeadline(t time.Time) error {
	return b.timed(func(c *net.TCPConn) error { return c.SetDeadline(t) })
}

// SetReadDeadline implements net.Conn.
func (b *Bare) SetReadDeadline(t time.Time) error {
	return b.timed(func(c *net.TCPConn) error { return c.SetReadDeadline(t) })
}

// SetWriteDeadline implements net.Conn.
func (b *Bare) SetWriteDeadline(t time.Time) error {
	return b.timed(func(c *net.TCPConn) error { return c.SetWriteDeadline(t) })
}

func (b *Bare) timed(set func(*net.TCPConn) error) error {
	c, err := b.TCP()
	if err != nil {
		return err
	}
	return set(c)
}

// SyscallConn implements syscall.Conn. Only Control works while the connection is bare.
func (b *Bare) SyscallConn() (syscall.RawConn, error) { return bareControl{b}, nil }

// bareControl is the syscall.RawConn of a Bare.
type bareControl struct{ b *Bare }

// Control implements syscall.RawConn.
func (r bareControl) Control(f func(fd uintptr)) error {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	switch {
	case r.b.tcp != nil:
		raw, err := r.b.tcp.SyscallConn()
		if err != nil {
			return err
		}
		return raw.Control(f)
	case r.b.fd < 0:
		return net.ErrClosed
	}
	f(uintptr(r.b.fd))
	return nil
}

// Read implements syscall.RawConn.
func (bareControl) Read(func(fd uintptr) bool) error { return syscall.EINVAL }

// Write implements syscall.RawConn.
func (bareControl) Write(func(fd uintptr) bool) error { return syscall.EINVAL }
