package netio

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keepAlive are what package net sets for connections that it accepts.
const (
	keepAliveSeconds = 15
	keepAliveTimes   = 9
)

// ListenBare returns a listener whose connections are of type *Bare. It takes l over. If the system
// cannot do it, ListenBare returns l.
func ListenBare(l *net.TCPListener) net.Listener {
	file, err := l.File()
	if err != nil {
		return l
	}
	raw, err := file.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { err = inherit(int(fd)) })
	}
	if err != nil {
		file.Close()
		return l
	}
	return &bareListener{l, file, raw}
}

// inherit sets the options that accepted sockets inherit from the listening one.
func inherit(fd int) error {
	for _, o := range [...]struct{ level, name, value int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepAliveSeconds},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepAliveSeconds},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAliveTimes},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return err
		}
	}
	return nil
}

// bareListener accepts with a duplicate of the socket: package net lets nobody else wait for a
// listener of its own.
type bareListener struct {
	*net.TCPListener
	file *os.File
	raw  syscall.RawConn // of file
}

// Accept implements net.Listener.
func (l *bareListener) Accept() (net.Conn, error) {
	var (
		fd     int
		client unix.Sockaddr
		failed error
	)
	err := l.raw.Read(func(socket uintptr) bool {
		for {
			fd, client, failed = unix.Accept4(int(socket), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			if !errors.Is(failed, unix.EINTR) && !errors.Is(failed, unix.ECONNABORTED) {
				return !errors.Is(failed, unix.EAGAIN)
			}
		}
	})
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, os.NewSyscallError("accept4", failed)
	}
	local, err := unix.Getsockname(fd)
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("getsockname", err)
	}
	return &Bare{fd: fd, local: addrOf(local), remote: addrOf(client)}, nil
}

// SetDeadline sets the end of Accept.
func (l *bareListener) SetDeadline(t time.Time) error { return l.file.SetDeadline(t) }

// Close implements net.Listener.
func (l *bareListener) Close() error {
	err := l.TCPListener.Close()
	if also := l.file.Close(); err == nil {
		err = also
	}
	return err
}

// addrOf returns the address of a TCP socket.
func addrOf(s unix.Sockaddr) net.Addr {
	switch s := s.(type) {
	case *unix.SockaddrInet4:
		return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port)))
	case *unix.SockaddrInet6:
		return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom16(s.Addr), uint16(s.Port)))
	}
	return &net.TCPAddr{}
}
