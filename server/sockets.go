package server

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"
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
		return nil, fmt.Errorf("socket error: expr=%s:%d msg=bind failed", host, port)
	}
	return socket.(*net.TCPListener), nil
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
