package freeport

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// childSpace is the environment of another process, which reserves all ports of a space: its
// directory, its lowest port and how many there are.
const childSpace = "GOTYCOON_FREEPORT_SPACE"

func TestMain(m *testing.M) {
	var s space
	if _, err := fmt.Sscan(os.Getenv(childSpace), &s.dir, &s.lowest, &s.count); err != nil {
		os.Exit(m.Run())
	}
	reserved, ports := s.all()
	fmt.Println(ports)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent kills this process
	runtime.KeepAlive(reserved)
}

// all reserves ports until there are no more, and returns them in order.
func (s space) all() (reserved []*Reservation, ports []int) {
	for {
		r, err := s.reserve(1)
		if err != nil {
			slices.Sort(ports)
			return reserved, ports
		}
		reserved, ports = append(reserved, r), append(ports, r.First)
	}
}

// small returns a space of so many ports that nobody listens on.
func small(t *testing.T, count int) space {
	t.Helper()
	return space{dir: t.TempDir(), lowest: TakeRow(t, count), count: count}
}

func (s space) ports() (ports []int) {
	for i := range s.count {
		ports = append(ports, s.lowest+i)
	}
	return ports
}

// Two processes never have the same port, and the end of one gives its ports back.
func TestAnotherProcessGetsOtherPorts(t *testing.T) {
	s := small(t, 6)
	ours, err := s.reserve(1)
	require.NoError(t, err)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", childSpace, s.dir, s.lowest, s.count))
	_, err = child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	_, left := s.all()
	runtime.KeepAlive(ours)
	require.NoError(t, child.Process.Kill())
	_ = child.Wait() // killed
	require.NoError(t, err)
	others := slices.DeleteFunc(s.ports(), func(port int) bool { return port == ours.First })
	require.Equal(t, fmt.Sprintln(others), line)
	require.Empty(t, left)
	reserved, ports := s.all()
	require.Equal(t, others, ports)
	for _, r := range append(reserved, ours) {
		r.Close()
	}
	files, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	require.Empty(t, files)
}

// Nor have two tests of a process, until one of them ends.
func TestPortsAreGivenBack(t *testing.T) {
	s := small(t, 6)
	reserved, ports := s.all()
	require.Equal(t, s.ports(), ports)
	_, err := s.reserve(1)
	require.ErrorContains(t, err, "there are no 1 free ports")
	reserved[2].Close()
	r, err := s.reserve(1)
	require.NoError(t, err)
	require.Equal(t, reserved[2].First, r.First)
	for _, r := range append(reserved, r) {
		r.Close()
	}

	path := func(port int) string {
		return filepath.Join(os.TempDir(), "gotycoon-ports", strconv.Itoa(port))
	}
	var port int
	t.Run("a test", func(t *testing.T) {
		port = Take(t)
		_, err := lock(path(port))
		require.ErrorIs(t, err, errTaken)
	})
	require.NoFileExists(t, path(port))
}

// A row is whole, or nothing of it is reserved.
func TestRows(t *testing.T) {
	s := small(t, 6)
	middle, err := s.take(s.lowest+2, 1)
	require.NoError(t, err)
	behind, err := s.reserve(3)
	require.NoError(t, err)
	defer behind.Close()
	require.Equal(t, s.lowest+3, behind.First)
	_, err = s.reserve(3)
	require.Error(t, err)
	before, err := s.reserve(2)
	require.NoError(t, err)
	defer before.Close()
	require.Equal(t, s.lowest, before.First)
	_, ports := s.all()
	require.Empty(t, ports)
	middle.Close()
	_, ports = s.all()
	require.Equal(t, []int{middle.First}, ports)
}

// A port is nobody's only if nobody listens on it at any address.
func TestPortsInUseAreNotHandedOut(t *testing.T) {
	s := small(t, 1)
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::"} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(s.lowest)))
		if err != nil && host[0] == ':' {
			t.Log("this machine has no IPv6: ", err)
			continue
		}
		require.NoError(t, err)
		_, err = s.reserve(1)
		require.ErrorContains(t, err, "there are no", host)
		require.NoError(t, l.Close())
		r, err := s.reserve(1)
		require.NoError(t, err, host)
		r.Close()
	}
}

// A file that was removed between its opening and its lock reserves nothing: the next one makes a
// file of the same name, and both would have the port.
func TestOnlyOneHasAPortWhileItChangesHands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "1")
	var owners, turns atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for turns.Load() < 1000 {
				f, err := lock(path)
				if err != nil {
					continue // another one has it
				}
				if n := owners.Add(1); n != 1 {
					t.Errorf("%d have the port", n)
				}
				turns.Add(1)
				owners.Add(-1)
				(&Reservation{locks: []*os.File{f}}).Close()
			}
		})
	}
	all.Wait()
}
