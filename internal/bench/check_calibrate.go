//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// calibration is a fixed piece of work like that of a server: a third of it hashes bytes, a third
// follows pointers through memory that no cache holds, and a third sends bytes to itself over
// loopback. One thread does it alone, so the processor time that it takes says how fast the machine
// is at the moment, and nothing about how busy.
type calibration struct {
	effort   effort
	bytes    []byte
	chain    []uint32 // each number is the index of the next: one ring through all
	at       uint32
	near     int // the two ends of a connection
	far      int
	checksum uint64 // keeps the compiler from leaving the work out

	used, passed time.Duration // by all units: processor time, and time
}

// effort is how much each part of a calibration has to do.
type effort struct{ pieces, links, steps, echoes int }

// wholeEffort takes a third of its time, about 50 ms, for each part on the machine for which it was
// made. The links are 32 MiB.
var wholeEffort = effort{pieces: 640, links: 8 << 20, steps: 300_000, echoes: 3_000}

func newCalibration(e effort) (*calibration, error) {
	c := &calibration{effort: e, bytes: make([]byte, 64<<10), chain: ring(e.links), near: -1, far: -1}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if c.near, err = dialRaw(l.Addr().String()); err != nil {
		return nil, err
	}
	accepted, err := l.Accept()
	if err != nil {
		c.close()
		return nil, err
	}
	file, err := accepted.(*net.TCPConn).File()
	err = errors.Join(err, accepted.Close())
	if err != nil {
		c.close()
		return nil, err
	}
	defer file.Close()
	c.far, err = unix.Dup(int(file.Fd())) // it outlives the file
	return c, err
}

func (c *calibration) close() {
	_, _ = unix.Close(c.near), unix.Close(c.far) // sockets of this process alone
}

// ring returns a permutation that is one ring, so that following it visits every element (Sattolo,
// "An algorithm to generate a random cyclic permutation", 1986).
func ring(n int) []uint32 {
	links, rnd := make([]uint32, n), rand.New(rand.NewPCG(7, 11))
	for i := range links {
		links[i] = uint32(i)
	}
	for i := n - 1; i > 0; i-- {
		j := rnd.IntN(i)
		links[i], links[j] = links[j], links[i]
	}
	return links
}

// unit returns the processor time of an echo with its share of the other work: some microseconds.
func (c *calibration) unit() (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clock := time.Now()
	begin, err := threadTime()
	if err != nil {
		return 0, err
	}
	for range c.effort.pieces {
		c.hash()
	}
	for range c.effort.steps {
		c.at = c.chain[c.at]
	}
	c.checksum += uint64(c.at)
	for range c.effort.echoes {
		if err := c.echo(); err != nil {
			return 0, fmt.Errorf("calibration: %w", err)
		}
	}
	end, err := threadTime()
	c.used += end - begin
	c.passed += time.Since(clock)
	return (end - begin) / time.Duration(c.effort.echoes), err
}

// share returns how much of a processor the calibrations have had: 1 if nobody else wanted it.
func (c *calibration) share() float64 { return float64(c.used) / float64(c.passed) }

// hash is FNV-1a, which processors have no instruction for.
func (c *calibration) hash() {
	h := uint64(14695981039346656037)
	for _, b := range c.bytes {
		h = (h ^ uint64(b)) * 1099511628211
	}
	c.checksum += h
}

// echo sends a message of a request's size to the other end and back.
func (c *calibration) echo() error {
	var message [128]byte
	for _, way := range [][2]int{{c.near, c.far}, {c.far, c.near}} {
		if _, err := unix.Write(way[0], message[:]); err != nil {
			return err
		}
		if err := readAll(way[1], message[:]); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads from a socket that does not block. On loopback the bytes are there already; else it
// asks again.
func readAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := unix.Read(fd, p)
		switch {
		case err == syscall.EAGAIN || err == syscall.EINTR:
		case err != nil:
			return err
		case n == 0:
			return io.ErrUnexpectedEOF
		default:
			p = p[n:]
		}
	}
	return nil
}

// threadTime returns the processor time of this thread.
func threadTime() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano()), err
}
