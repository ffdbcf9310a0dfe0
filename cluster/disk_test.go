package cluster

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/cluster/election"
)

// hang has one method of the data wait. The method has begun when begun is closed; release lets it
// go on.
func (d *fakeData) hang(t *testing.T, method string) (begun chan struct{}, release func()) {
	t.Helper()
	return d.hangFrom(t, method, 1)
}

// hangFrom is hang from the n-th call on.
func (d *fakeData) hangFrom(t *testing.T, method string, n int64) (begun chan struct{}, release func()) {
	t.Helper()
	begun, ends := make(chan struct{}), make(chan struct{})
	var once, end sync.Once
	var calls atomic.Int64
	d.waits = func(m string) {
		if m == method && calls.Add(1) >= n {
			once.Do(func() { close(begun) })
			<-ends
		}
	}
	release = func() { end.Do(func() { close(ends) }) }
	t.Cleanup(release)
	return begun, release
}

// soon fails the test unless f returns.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal(what + " waits for the disk")
	}
}

// Whatever waits for the disk, a member that another one seals, or that has lost the leadership, is
// the primary no more, and says so.
func TestAMemberStepsDownWhileItsDiskHangs(t *testing.T) {
	for method, begin := range map[string]func(n *Node){
		"Halt":      func(n *Node) { _, _ = n.seal(n.ctx, 2) },
		"Inventory": func(n *Node) { _, _ = n.seal(n.ctx, 2) },
		"Shut":      func(n *Node) { _ = n.switchOver(n.ctx, "b") },
	} {
		t.Run(method, func(t *testing.T) {
			n, e, d := newPrimary(t)
			stepped := make(chan struct{})
			d.stepped = func() { close(stepped) }
			begun, release := d.hang(t, method)
			var hanging sync.WaitGroup
			hanging.Go(func() { begin(n) })
			<-begun
			soon(t, "stepping down", func() {
				e.lead(false, 1)
				n.mu.Lock()
				n.heed(e.Leading())
				n.mu.Unlock()
				<-stepped
			})
			soon(t, "the status", func() { require.Equal(t, Waiting, n.Status().Role) })
			soon(t, "a second seal", func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				_, err := n.seal(ctx, 3)
				require.ErrorIs(t, err, errWorking)
			})
			require.ErrorIs(t, n.Serving(), ErrNotPrimary)
			release()
			hanging.Wait()
			require.Equal(t, Waiting, n.Status().Role, "the disk goes on")
			require.ErrorIs(t, n.Serving(), ErrNotPrimary)
		})
	}
}

// A leader whose disk hangs when its term is to begin has nothing to step down from, and hands over
// all the same.
func TestALeaderWhoseDiskHangsAtTheBeginningOfItsTermHandsOver(t *testing.T) {
	for _, method := range []string{"Lead", "Ready"} {
		t.Run(method, func(t *testing.T) {
			n, e, d := newPrimary(t)
			others(t, n, Inventory{}, Inventory{})
			e.lead(false, 1)
			n.look()
			e.mu.Lock()
			e.state = e.state.Appoint(election.Appointment{Term: 3, Primary: "a", Start: 1}, 1)
			e.leads, e.term = true, 3
			e.mu.Unlock()
			begun, release := d.hang(t, method)
			var hanging sync.WaitGroup
			hanging.Go(n.look)
			<-begun
			watchFor(n, time.Now(), LeastDiskTimeout+time.Second)
			require.Eventually(t, func() bool { return len(e.transfers()) == 1 }, 5*time.Second, time.Millisecond)
			release()
			hanging.Wait()
			require.Eventually(t, func() bool { return n.worked.Load()%2 == 0 }, 5*time.Second, time.Millisecond)
			require.Equal(t, Waiting, n.Status().Role, "the leadership was lost meanwhile")
			require.ErrorIs(t, n.Serving(), ErrNotPrimary)
		})
	}
}

// A member that cannot seal itself, since its disk hangs, lets another one take over.
func TestALeaderThatCannotSealItselfHandsOver(t *testing.T) {
	n, e, d := newPrimary(t)
	n.opts.DiskTimeout = time.Millisecond
	e.lead(true, 2)
	begun, release := d.hang(t, "Halt")
	n.look()
	<-begun
	require.Equal(t, []string{"b"}, e.transfers())
	release()
}

// A server that stops while its disk hangs does not wait for it before others can lead.
func TestAMemberThatIsClosedWhileItsDiskHangsLeadsNoMore(t *testing.T) {
	for _, method := range []string{"Lead", "Ready"} {
		t.Run(method, func(t *testing.T) {
			n, e, d := newPrimary(t)
			begun, release := d.hang(t, method)
			e.lead(false, 1)
			n.look()
			e.mu.Lock()
			e.state = e.state.Appoint(election.Appointment{Term: 3, Primary: "a", Start: 1}, 1)
			e.leads, e.term = true, 3
			e.mu.Unlock()
			n.Start()
			<-begun
			var closing sync.WaitGroup
			closing.Go(func() { require.NoError(t, n.Close()) })
			require.Eventually(t, e.isClosed, 5*time.Second, time.Millisecond)
			require.Equal(t, Waiting, n.View().Role)
			release()
			closing.Wait()
			require.Equal(t, Waiting, n.View().Role, "the disk goes on")
			require.ErrorIs(t, n.Serving(), ErrNotPrimary)
		})
	}
}

// A primary that is about to stop asks its disk nothing that it need not, and waits no longer than
// it was told to.
func TestAPrimaryWhoseDiskHangsResigns(t *testing.T) {
	n, e, d := newPrimary(t)
	others(t, n, Inventory{}, Inventory{})
	_, release := d.hang(t, "Inventory")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	soon(t, "resigning", func() { n.Resign(ctx) })
	require.Empty(t, e.transfers())
	require.NoError(t, n.Serving())
	d.disk = Disk{Waiting: true, Done: [4]uint64{1}}
	watchFor(n, time.Now(), 2*time.Second)
	require.Empty(t, e.transfers(), "it may go on")
	soon(t, "resigning", func() { n.Resign(t.Context()) })
	require.Len(t, e.transfers(), 1)
	require.ErrorIs(t, n.Serving(), ErrNotPrimary)
	release()
}

func (e *fakeElector) transfers() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.handed
}

// watchFor has a node look at its disk for so long, without waiting for it.
func watchFor(n *Node, from time.Time, long time.Duration) {
	for at := time.Duration(0); at <= long; at += lookEvery {
		_, leads := n.elector.Leading()
		n.heedDisk(from.Add(at), leads)
	}
}

// others runs the members b and c, which follow and have something, and connects the node to them.
func others(t *testing.T, n *Node, has ...Inventory) map[string]*Node {
	t.Helper()
	st := n.elector.State()
	all := map[string]*Node{}
	for i, name := range []string{"b", "c"}[:len(has)] {
		e := &fakeElector{changed: make(chan struct{}), state: st, term: st.Term}
		o, err := Open(Options{
			Name: name, Dir: t.TempDir(), Data: &fakeData{has: has[i]},
			Dial:    func(context.Context, string) (net.Conn, error) { return nil, errAway },
			Elector: func(election.Transport) (election.Elector, func(string, []byte), error) { return e, nil, nil },
		})
		require.NoError(t, err)
		require.NoError(t, o.follow(st))
		all[name] = o
	}
	n.mesh.dial = func(_ context.Context, addr string) (net.Conn, error) {
		o := all[addr]
		if o == nil {
			return nil, errAway
		}
		near, far := net.Pipe()
		o.Accept("a", far)
		return near, nil
	}
	t.Cleanup(func() {
		for _, o := range all {
			require.NoError(t, o.Close())
		}
	})
	return all
}

func TestAPrimaryWhoseDiskHangsHandsOver(t *testing.T) {
	n, e, d := newPrimary(t)
	others(t, n, Inventory{Lag: 3}, Inventory{Lag: 1})
	var served error
	d.stepped = func() {
		served = n.Serving()
		require.Empty(t, e.transfers(), "a lease may be used until the transfer begins")
	}
	d.disk = Disk{Waiting: true, Done: [4]uint64{1}}
	watchFor(n, time.Now(), LeastDiskTimeout+time.Second)
	require.Eventually(t, func() bool { return len(e.transfers()) == 1 }, 5*time.Second, time.Millisecond)
	require.Equal(t, []string{"c"}, e.transfers(), "the one that lags less")
	require.ErrorIs(t, served, ErrNotPrimary)
	s := n.Status()
	require.Equal(t, Waiting, s.Role)
	require.Contains(t, s.Trouble, "has done nothing for 1")
}

// A disk that is slow is no hung one, and a pause of the process says nothing of its disk.
func TestAPrimaryWhoseDiskIsSlowGoesOn(t *testing.T) {
	n, e, d := newPrimary(t)
	others(t, n, Inventory{}, Inventory{})
	at := time.Now()
	for i := range uint64(10) { // each fsync takes nearly as long as it may
		d.disk = Disk{Waiting: true, Done: [4]uint64{i}}
		watchFor(n, at, LeastDiskTimeout-lookEvery)
		at = at.Add(LeastDiskTimeout)
	}
	d.disk.Done[0]++
	for range 5 {
		at = at.Add(time.Hour)
		n.heedDisk(at, true)
	}
	require.Less(t, n.Stalled(), LeastDiskTimeout)
	d.disk = Disk{Done: d.disk.Done}
	watchFor(n, at, 2*LeastDiskTimeout) // nobody waits for the disk
	require.Empty(t, e.transfers())
	require.NoError(t, n.Serving())
}

// Without another member that can take over nothing is gained by stepping down.
func TestAPrimaryWhoseDiskHangsStaysWhereNobodyCanTakeOver(t *testing.T) {
	for name, has := range map[string][]Inventory{
		"one is away":            {{}},
		"one gets a copy":        {{}, {Incomplete: "a copy is under way"}},
		"both are being stopped": {{Leaving: true}, {Leaving: true}},
	} {
		t.Run(name, func(t *testing.T) {
			n, e, d := newPrimary(t)
			others(t, n, has...)
			d.stepped = func() { t.Error("the primary has stepped down") }
			d.disk = Disk{Waiting: true, Done: [4]uint64{1}}
			watchFor(n, time.Now(), LeastDiskTimeout+time.Second)
			require.Eventually(t, func() bool {
				n.mu.Lock()
				defer n.mu.Unlock()
				return n.told != ""
			}, 5*time.Second, time.Millisecond)
			require.Empty(t, e.transfers())
			require.NoError(t, n.Serving())
			d.disk, d.stepped = Disk{}, nil
			n.heedDisk(time.Now(), true)
			require.Empty(t, n.Status().Trouble)
		})
	}
}
