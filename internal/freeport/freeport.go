// Package freeport reserves TCP ports for tests that must name a port before somebody listens on
// it, and for tests that restart a server on its port.
//
// The usual way is to listen on port 0, to close the listener, and to hand on its number. Until a
// server listens on it again the number is nobody's: the system gives it to the next process that
// asks for port 0, or makes it the source of an outgoing connection, and the server fails with
// "address already in use". Tests of several packages run at the same time, with thousands of
// connections, so that happened once in some runs of all tests.
//
// A port of this package is safe from all of that:
//
//   - It is below the ports that the system chooses itself (on Linux 32768 to 60999), so that only
//     those who ask for its number get it.
//   - A file of its number in a directory of the machine is locked until the port is given back.
//     All tests look there, in whatever process, so two of them never have the same port. The lock
//     ends with the process, also if the process is killed.
//   - Nobody listens on it when it is handed out: neither a server at a fixed port nor one that a
//     test has left behind.
//
// Where a server can listen on port 0, report the port, and never listen on it again, that is
// simpler.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// T is what this package needs of a testing.TB. Programs that reserve ports too need not have the
// package testing.
type T interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
}

// Take returns a port that is the test's until its end. What the test starts on the port afterwards
// is cleaned up before.
func Take(t T) int {
	t.Helper()
	return TakeRow(t, 1)
}

// Addr returns the address of a port of loopback that is the test's until its end.
func Addr(t T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Take(t)))
}

// TakeRow returns the first of n ports, one behind the other, that are the test's until its end.
func TakeRow(t T, n int) (first int) {
	t.Helper()
	r, err := Reserve(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r.First
}

// Reservation is a row of ports that nobody else gets until Close. Keep it as long as the ports are
// in use: the garbage collector closes what nobody refers to.
type Reservation struct {
	First int // the first port of the row

	locks []*os.File // one for each port
}

// Reserve reserves n ports, one behind the other.
func Reserve(n int) (*Reservation, error) {
	// The lower bound leaves out the usual ports of memcached and of the services. The upper one
	// is below those of the system, and below 32768, where clients of the original cannot connect.
	machine := space{dir: filepath.Join(os.TempDir(), "gotycoon-ports"), lowest: 12_000, count: 20_000}
	return machine.reserve(n)
}

// Close gives the ports back.
func (r *Reservation) Close() {
	for _, f := range r.locks {
		// The file is removed under its lock: who has opened it meanwhile finds that it is not
		// the file of that name any more, and has reserved nothing.
		_ = os.Remove(f.Name())
		_ = f.Close()
	}
	r.locks = nil
}

// space is a range of ports, and the directory with their locks.
type space struct {
	dir           string
	lowest, count int
}

// errTaken is the error of a port that somebody else has.
var errTaken = errors.New("the port is taken")

func (s space) reserve(n int) (*Reservation, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	_ = os.Chmod(s.dir, 0o777) // other users look here too; it fails if one of them has made it
	rows := s.count - n + 1
	// Beginning anywhere, a test hardly gets a port that another test has just given back: a client
	// of that one may still try to connect.
	begin := rand.IntN(rows)
	for i := range rows {
		r, err := s.take(s.lowest+(begin+i)%rows, n)
		if !errors.Is(err, errTaken) {
			return r, err
		}
	}
	return nil, fmt.Errorf("there are no %d free ports one behind the other from %d on", n, s.lowest)
}

// take reserves the n ports from first on.
func (s space) take(first, n int) (*Reservation, error) {
	r := &Reservation{First: first}
	for port := first; port < first+n; port++ {
		f, err := lock(filepath.Join(s.dir, strconv.Itoa(port)))
		if err == nil {
			r.locks = append(r.locks, f)
			err = unused(port)
		}
		if err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// lock makes the file and locks it. A lock belongs to an open file, not to a process: it keeps out
// other tests of this process as well, and the programs that this process starts do not inherit it.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o444)
	if errors.Is(err, os.ErrPermission) { // the file of another user
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || err == nil && !named(f, path) {
		err = errTaken
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// named reports whether the open file is the one that the path leads to, and has not been removed.
func named(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(open, there)
}

// unused returns errTaken if somebody listens on the port. Each address is tried by itself, because
// a system may let a server listen on all addresses beside one that listens on a single one.
func unused(port int) error {
	for _, a := range [][2]string{{"tcp4", "127.0.0.1"}, {"tcp6", "::1"}, {"tcp4", ""}, {"tcp6", ""}} {
		l, err := net.Listen(a[0], net.JoinHostPort(a[1], strconv.Itoa(port)))
		if err == nil {
			err = l.Close()
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			return errTaken
		}
		if err != nil && a[0] == "tcp4" { // a machine need not have IPv6
			return err
		}
	}
	return nil
}
