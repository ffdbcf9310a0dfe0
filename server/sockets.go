package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"gotycoon/internal/netio"
)

// MaxPort is the largest port: clients in use cannot parse larger ones.
const MaxPort = 32767

// deadPeer is the time without an acknowledgement of the network after which the connection of a
// follower is given up.
const deadPeer = 15 * time.Second

// resolve returns the IPv4 address of a host, "" for "".
func resolve(host string) (string, error) {
	if host == "" {
		return "", nil
	}
	addr, err := net.ResolveIPAddr("ip4", host)
	if err != nil {
		return "", err
	}
	return addr.String(), nil
}

// bind opens a listening socket, IPv4 only. Go sets SO_REUSEADDR and the largest backlog by itself,
// and TCP_NODELAY and keep-alive on accepted connections. The error is the text of a log line.
func bind(host string, port int) (*net.TCPListener, error) {
	socket, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, &bindError{host, port, err}
	}
	return socket.(*net.TCPListener), nil
}

// bare has the connections of a socket rest in loops, if there are loops and the socket is without
// TLS.
func bare(l net.Listener, loops *netio.Loops) net.Listener {
	if tcp, ok := l.(*net.TCPListener); ok && loops != nil {
		return netio.ListenBare(tcp)
	}
	return l
}

// bindError says that a port could not be opened. Its text is that of the original.
type bindError struct {
	host  string
	port  int
	cause error
}

// Error is the text of a log line.
func (e *bindError) Error() string {
	return fmt.Sprintf("socket error: expr=%s:%d msg=bind failed", e.host, e.port)
}

// advice names the cause, which the original's line does not, and what to do.
func (e *bindError) advice() string {
	addr := net.JoinHostPort(e.host, strconv.Itoa(e.port))
	switch {
	case errors.Is(e.cause, syscall.EADDRINUSE):
		return fmt.Sprintf("this server cannot listen on %s: another process has the port, 'ss -ltnp' shows which. End that process, or choose another port", addr)
	case errors.Is(e.cause, syscall.EADDRNOTAVAIL):
		return fmt.Sprintf("this server cannot listen on %s: no network of this machine has the address: correct -host", addr)
	case errors.Is(e.cause, syscall.EACCES):
		return fmt.Sprintf("this server cannot listen on %s: ports below 1024 are for root, or a process with CAP_NET_BIND_SERVICE", addr)
	}
	return fmt.Sprintf("this server cannot listen on %s: %v", addr, e.cause)
}

// failure logs why the server, or a part of it, does not start.
func failure(log logger, err error) {
	log.error("%v", err)
	if e, ok := errors.AsType[*bindError](err); ok {
		log.error("%s", e.advice())
	}
}

// badAddress is the text of the log line about a port that clients cannot parse.
func badAddress(host string, port int) error {
	return fmt.Errorf("socket error: expr=%s:%d msg=invalid address expression", host, port)
}

// logOpened writes the lines about a port that is open.
func logOpened(log logger, socket *net.TCPListener, host string, port int, timeout time.Duration) {
	log.system("server socket opened: expr=%s:%d timeout=%.1f", host, port, timeout.Seconds())
	log.system("listening server socket started: fd=%d", descriptor(socket))
}

// descriptor returns the number that the operating system gave the socket, -1 when it does not say.
func descriptor(socket *net.TCPListener) int {
	number := -1
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { number = int(fd) }) // fails for a closed socket
	}
	return number
}
