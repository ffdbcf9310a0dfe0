package election

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
	"gotycoon/internal/needs"
)

// A party is a cluster of electors in real time: one process, and a network that the test rules.
type party struct {
	t       *testing.T
	open    func(*guest) (Elector, error)
	members []Member
	etcd    string // address, for electors of that kind

	mu     sync.Mutex
	guests map[string]*guest
	cut    map[[2]string]bool // from, to; an etcd is called "etcd"
	end    chan struct{}
	ended  sync.WaitGroup
}

// A guest is a member. What it is without an elector outlives its crashes.
type guest struct {
	p       *party
	name    string
	rate    float64 // of its clock
	dir     string
	members []Member
	began   time.Time

	mu      sync.Mutex
	awake   *sync.Cond
	paused  bool
	e       Elector   // nil while it is down
	until   time.Time // end of the last lease, in real time
	handing bool      // a transfer voids the leases
}

// parties runs a test with both kinds of electors.
func parties(t *testing.T, names []string, test func(*testing.T, *party)) {
	t.Parallel()
	t.Run("raft", func(t *testing.T) {
		t.Parallel()
		test(t, newParty(t, openRaftGuest, names))
	})
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		address := startEtcd(t)
		p := newParty(t, openEtcdGuest, nil)
		p.etcd = address
		p.invite(names)
		test(t, p)
	})
}

func newParty(t *testing.T, open func(*guest) (Elector, error), names []string) *party {
	p := &party{
		t: t, open: open, guests: map[string]*guest{}, cut: map[[2]string]bool{}, end: make(chan struct{}),
	}
	t.Cleanup(func() {
		close(p.end)
		for _, g := range p.guests {
			g.kill()
		}
		p.ended.Wait()
	})
	p.ended.Go(p.watch)
	p.invite(names)
	return p
}

// invite starts the members of a new cluster. Names that begin with w are witnesses.
func (p *party) invite(names []string) {
	for i, name := range names {
		p.members = append(p.members, Member{
			Name: name, Addr: name + ":1978", SID: uint16(i + 1), Witness: name[0] == 'w',
		})
	}
	for _, name := range names {
		p.guest(name, p.members).start()
	}
}

func (p *party) guest(name string, members []Member) *guest {
	g := &guest{p: p, name: name, rate: 1, dir: fastDir(p.t), members: members, began: time.Now()}
	g.awake = sync.NewCond(&g.mu)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.guests[name] = g
	return g
}

func (p *party) all() []*guest {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*guest
	for _, g := range p.guests {
		all = append(all, g)
	}
	return all
}

func (p *party) isCut(from, to string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut[[2]string{from, to}]
}

// isolate cuts a member off.
func (p *party) isolate(name string, in, out bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range append([]string{"etcd"}, keys(p.guests)...) {
		p.cut[[2]string{other, name}] = in
		p.cut[[2]string{name, other}] = out
	}
}

func keys(m map[string]*guest) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	return names
}

func (p *party) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.cut)
}

// watch checks that the leases of two members never overlap.
func (p *party) watch() {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.end:
			return
		case <-tick.C:
		}
		all := p.all()
		for _, g := range all {
			g.mu.Lock()
			held := g.e != nil && !g.handing && g.noteLeaseLocked()
			now := time.Now()
			g.mu.Unlock()
			for _, other := range all {
				if held && other != g && other.promisedAfter(now) {
					p.t.Errorf("%s and %s have a lease at one time", g.name, other.name)
				}
			}
		}
	}
}

// noteLeaseLocked reports whether the member has a lease now.
func (g *guest) noteLeaseLocked() bool {
	term, until := g.e.Lease()
	if term == 0 {
		return false
	}
	g.until = g.began.Add(time.Duration(float64(until.Sub(g.began)) / g.rate))
	return true
}

func (g *guest) promisedAfter(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until.After(now)
}

// elector returns the elector, nil while the member is down.
func (g *guest) elector() Elector {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.e
}

func (g *guest) start() {
	e, err := g.p.open(g)
	require.NoError(g.p.t, err)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.e = e
}

func (g *guest) kill() {
	g.resume()
	e := g.elector()
	if e == nil {
		return
	}
	require.NoError(g.p.t, e.Close())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.e = nil
}

func (g *guest) pause() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = true
}

func (g *guest) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = false
	g.awake.Broadcast()
}

// wait returns when the member is not paused.
func (g *guest) wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.paused {
		g.awake.Wait()
	}
}

// Now implements Clock.
func (g *guest) Now() time.Time {
	return g.began.Add(time.Duration(float64(time.Since(g.began)) * g.rate))
}

// AfterFunc implements Clock.
func (g *guest) AfterFunc(d time.Duration, f func()) func() {
	t := time.AfterFunc(time.Duration(float64(d)/g.rate), func() {
		g.wait()
		f()
	})
	return func() { t.Stop() }
}

// Send implements Transport.
func (g *guest) Send(to Member, msg []byte) {
	if g.p.isCut(g.name, to.Name) {
		return
	}
	g.p.mu.Lock()
	other := g.p.guests[to.Name]
	g.p.mu.Unlock()
	if other == nil {
		return
	}
	time.AfterFunc(time.Duration(rand.Int64N(int64(2*time.Millisecond))), func() {
		other.wait()
		if r, ok := other.elector().(*Raft); ok {
			r.Receive(g.name, msg)
		}
	})
}

func openRaftGuest(g *guest) (Elector, error) {
	return OpenRaft(RaftConfig{
		Cluster: "test", Name: g.name, Addr: g.name + ":1978", Members: g.members, Dir: g.dir,
		Transport: g, Clock: g, Tick: 80 * time.Millisecond,
	})
}

func openEtcdGuest(g *guest) (Elector, error) {
	c, err := ParseEtcd(g.p.etcd)
	if err != nil {
		return nil, err
	}
	c.Cluster, c.Name, c.Members, c.Clock = "test", g.name, g.members, g
	c.Timeout, c.transport = time.Second, g
	return OpenEtcd(c)
}

var errCut = errors.New("the network is cut")

// RoundTrip implements http.RoundTripper. A member that is paused neither sends nor takes an
// answer.
func (g *guest) RoundTrip(req *http.Request) (*http.Response, error) {
	g.wait()
	if g.p.isCut(g.name, "etcd") {
		return nil, errCut
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(text))
	g.wait()
	if g.p.isCut("etcd", g.name) {
		return nil, errCut
	}
	return resp, err
}

// startEtcd starts an etcd on the loopback address.
func startEtcd(t *testing.T) string {
	t.Helper()
	path := needs.Program(t, "etcd-server", "etcd")
	dir := fastDir(t)
	client, peer := "http://"+freeport.Addr(t), "http://"+freeport.Addr(t)
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd := exec.Command(path, "--data-dir", filepath.Join(dir, "data"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "default="+peer)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		require.NoError(t, log.Close())
	})
	healthy := func() bool {
		resp, err := http.Get(client + "/health")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
	for !healthy() {
		select {
		case <-ended:
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("etcd has ended:\n%s", said)
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("etcd does not start")
		}
	}
	return client
}

// fastDir returns a directory in memory where there is one. How long a disk takes is no matter of the
// tests in real time; timers would have to be as long.
func fastDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "election")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
