package cluster

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// network is what lies between the members: each member is reached by the others through a listener
// here. Each direction between two members can be cut or slowed down for itself.
//
// All members dial the same address of a member, so who has dialled is looked up in the tables of
// the system: whose socket it is.
type network struct {
	t  *testing.T
	wg sync.WaitGroup

	mu     sync.Mutex
	cond   *sync.Cond
	ends   []*end
	ways   map[way]condition
	conns  map[*passage]struct{}
	closed bool
}

// end is a member as the others reach it.
type end struct {
	listener net.Listener
	target   string       // where the member listens
	pid      atomic.Int64 // 0: the member does not run
}

// way is a direction between two members.
type way struct{ from, to int }

// condition of a way. The zero value is a good network.
type condition struct {
	held  bool          // nothing arrives, and nobody is told
	shut  bool          // connections break, and new ones too
	delay time.Duration // of each piece of data
}

// passage is a connection between two members.
type passage struct {
	from, to  int
	near, far net.Conn
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("who has opened a connection is looked up in /proc/net/tcp: ", err)
	}
	n := &network{t: t, ways: map[way]condition{}, conns: map[*passage]struct{}{}}
	n.cond = sync.NewCond(&n.mu)
	t.Cleanup(n.close)
	return n
}

// add makes the end of a member that listens at target, and returns its address for the others.
func (n *network) add(target string) (e *end, addr string) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(n.t, err)
	n.mu.Lock()
	defer n.mu.Unlock()
	e = &end{listener: l, target: target}
	to := len(n.ends)
	n.ends = append(n.ends, e)
	n.wg.Go(func() { n.accept(to, e) })
	return e, l.Addr().String()
}

func (n *network) accept(to int, e *end) {
	for {
		near, err := e.listener.Accept()
		if err != nil {
			return
		}
		n.wg.Go(func() {
			if from, ok := n.whose(near); ok {
				n.connect(from, to, e, near)
			} else {
				near.Close() // the process has ended
			}
		})
	}
}

// whose finds the member that has dialled.
func (n *network) whose(near net.Conn) (member int, ok bool) {
	inode, err := inodeOf(near)
	if err != nil {
		return 0, false
	}
	n.mu.Lock()
	ends := n.ends
	n.mu.Unlock()
	for i, e := range ends {
		dir := fmt.Sprintf("/proc/%d/fd", e.pid.Load())
		files, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, f := range files {
			if to, err := os.Readlink(dir + "/" + f.Name()); err == nil && to == "socket:["+inode+"]" {
				return i, true
			}
		}
	}
	return 0, false
}

// inodeOf returns the number of the socket at the other end of a connection.
func inodeOf(near net.Conn) (string, error) {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return "", err
	}
	defer f.Close()
	theirs := fmt.Sprintf(":%04X", near.RemoteAddr().(*net.TCPAddr).Port)
	ours := fmt.Sprintf(":%04X", near.LocalAddr().(*net.TCPAddr).Port)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		cols := strings.Fields(lines.Text())
		if len(cols) > 9 && strings.HasSuffix(cols[1], theirs) && strings.HasSuffix(cols[2], ours) {
			if _, err := strconv.ParseUint(cols[9], 10, 64); err == nil && cols[9] != "0" {
				return cols[9], nil
			}
		}
	}
	return "", fmt.Errorf("no socket has the port %s", theirs)
}

func (n *network) connect(from, to int, e *end, near net.Conn) {
	if !n.pass(way{from, to}) {
		near.Close()
		return
	}
	far, err := net.DialTimeout("tcp4", e.target, time.Second)
	if err != nil {
		near.Close()
		return
	}
	p := &passage{from: from, to: to, near: near, far: far}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		near.Close()
		far.Close()
		return
	}
	n.conns[p] = struct{}{}
	n.wg.Go(func() { n.copy(p, way{from, to}, far, near) })
	n.wg.Go(func() { n.copy(p, way{to, from}, near, far) })
}

// copy passes on what comes. The end of a connection waits as data do.
func (n *network) copy(p *passage, w way, to, from net.Conn) {
	defer n.drop(p)
	buf := make([]byte, 64<<10)
	for {
		size, err := from.Read(buf)
		if !n.pass(w) || err != nil {
			return
		}
		if _, err := to.Write(buf[:size]); err != nil {
			return
		}
	}
}

// pass waits until data may go on; false: the connection has to break.
func (n *network) pass(w way) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if delay := n.ways[w].delay; delay > 0 {
		n.mu.Unlock()
		time.Sleep(delay) //lint:sleep the delay is what is tested
		n.mu.Lock()
	}
	for n.ways[w].held && !n.closed {
		n.cond.Wait()
	}
	return !n.ways[w].shut && !n.closed
}

func (n *network) drop(p *passage) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, p)
	p.near.Close()
	p.far.Close()
}

// set changes the condition of ways. Where connections break, their members are told at once.
func (n *network) set(c condition, breaks bool, ways ...way) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range ways {
		n.ways[w] = c
		for p := range n.conns {
			if (breaks || c.shut) && (w == way{p.from, p.to} || w == way{p.to, p.from}) {
				p.near.Close()
				p.far.Close()
			}
		}
	}
	n.cond.Broadcast()
}

// heal makes the network good. What was held arrives late, or its connections break.
func (n *network) heal(breaks bool) {
	n.mu.Lock()
	var all []way
	for w, c := range n.ways {
		if c != (condition{}) {
			all = append(all, w)
		}
	}
	n.mu.Unlock()
	n.set(condition{}, breaks, all...)
}

func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	for _, e := range n.ends {
		e.listener.Close()
	}
	for p := range n.conns {
		p.near.Close()
		p.far.Close()
	}
	n.cond.Broadcast()
	n.mu.Unlock()
	n.wg.Wait()
}
