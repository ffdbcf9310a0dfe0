//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"gotycoon/internal/freeport"
)

// process is a server that was started for a measurement. What the kernel knows about the process
// is in usage.go.
type process struct {
	cmd  *exec.Cmd
	port string
	dir  string

	reserved *freeport.Reservation // of the ports
}

// start runs a server and waits until it accepts connections. In args $PORT stands for the port,
// $PORT1 and $PORT2 for two further ports, and $DIR for the directory of the server.
func start(bin string, args ...string) (*process, error) {
	reserved, err := freeport.Reserve(3)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		reserved.Close()
		return nil, err
	}
	port := strconv.Itoa(reserved.First)
	for i := range args {
		args[i] = os.Expand(args[i], func(name string) string {
			return map[string]string{"PORT": port, "PORT1": after(port, 1), "PORT2": after(port, 2), "DIR": dir}[name]
		})
	}
	p := &process{cmd: exec.Command(bin, args...), port: port, dir: dir, reserved: reserved}
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.ready(); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *process) addr() string { return "127.0.0.1:" + p.port }

// further returns the address of $PORT1 or $PORT2.
func (p *process) further(n int) string { return "127.0.0.1:" + after(p.port, n) }

// after returns the n-th port after the first one of a server.
func after(port string, n int) string {
	first, _ := strconv.Atoi(port)
	return strconv.Itoa(first + n)
}

// ready waits until the server accepts a connection.
func (p *process) ready() error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		c, err := net.DialTimeout("tcp", p.addr(), time.Second)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not listen: %w", p.cmd.Path, err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// end sends a signal and returns how long the server takes to end. Its directory stays.
func (p *process) end(signal os.Signal) (time.Duration, error) {
	begin := time.Now()
	if err := p.cmd.Process.Signal(signal); err != nil {
		return 0, err
	}
	_ = p.cmd.Wait() // its exit code is not of interest here
	return time.Since(begin), nil
}

// again starts a server that has ended with the same directory, and returns how long its first
// answer to a request takes.
func (p *process) again() (time.Duration, error) {
	p.cmd = exec.Command(p.cmd.Path, p.cmd.Args[1:]...)
	p.cmd.Stderr = os.Stderr
	begin := time.Now()
	if err := p.cmd.Start(); err != nil {
		return 0, err
	}
	const patience = 10 * time.Minute
	for {
		err := p.answers()
		if err == nil {
			return time.Since(begin), nil
		}
		if time.Since(begin) > patience {
			return 0, fmt.Errorf("%s does not answer: %w", p.cmd.Path, err)
		}
		<-time.After(time.Millisecond)
	}
}

// answers makes one HTTP request, and returns nil if a reply begins.
func (p *process) answers() error {
	c, err := net.DialTimeout("tcp", p.addr(), time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET /first HTTP/1.1\r\n\r\n")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

// stop ends the server and removes its directory.
func (p *process) stop() error {
	err := p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait() // its exit code is not of interest here
	p.reserved.Close()
	return errors.Join(err, os.RemoveAll(p.dir))
}
