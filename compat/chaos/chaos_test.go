package chaos

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// duration is how long everything goes wrong.
func duration(t *testing.T) time.Duration {
	t.Helper()
	text, ok := os.LookupEnv("GOTYCOON_CHAOS")
	if !ok {
		return 6 * time.Second
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "GOTYCOON_CHAOS is a number of seconds")
	return time.Duration(n) * time.Second
}

// misfortune does something bad about five times a second until the time is over. Then it makes
// everything healthy.
func misfortune(t *testing.T, nets []*proxy, nodes []*node) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	did := map[string]int{}
	for end := time.Now().Add(duration(t)); time.Now().Before(end); {
		p := nets[rnd.IntN(len(nets))]
		switch event := rnd.IntN(7); event {
		case 0, 1:
			did["cut"]++
			p.set(cut)
		case 2:
			did["slow"]++
			p.set(slow)
		case 3:
			did["half open"]++
			p.set(halfOpen)
		case 4, 5:
			did["healthy"]++
			p.set(healthy)
		default:
			back := time.Duration(rnd.IntN(2)) * time.Hour
			did["killed, clock back "+back.String()]++
			nodes[rnd.IntN(len(nodes))].kill(back)
		}
		<-time.After(time.Duration(50+rnd.IntN(300)) * time.Millisecond) // length of the misfortune
	}
	for _, p := range nets {
		p.set(healthy)
	}
	t.Logf("%v", did)
}

// A chain: a master, its slave, and a slave of that.
func TestChain(t *testing.T) {
	master := newNode(t, settings{Database: "a.kct", SID: 1})
	first := newProxy(t, master.proc.Addr())
	slave := newNode(t, settings{Database: "a.kct", SID: 2, MasterPort: first.port()})
	second := newProxy(t, slave.proc.Addr())
	last := newNode(t, settings{Database: "a.kct", SID: 3, MasterPort: second.port()})
	third := newProxy(t, master.proc.Addr())
	agent := startAgent(t, third.port())

	writers := []*writer{{node: master, id: 1, keys: 20}, {node: master, id: 2, keys: 20}, {node: master, id: 3, keys: 3}}
	stop := startWriters(t, writers)
	agent.awaitLine(t)
	misfortune(t, []*proxy{first, second, third}, []*node{master, slave, last})
	t.Logf("%d updates were acknowledged", stop())
	contents := sameContents(t, master, slave, last)
	for _, w := range writers {
		require.Positive(t, w.acked)
		w.check(t, contents)
	}
	agent.check(t, contents)
}

// Two masters that follow each other, whose clients change the same keys, and a slave of one of
// them.
func TestDualMaster(t *testing.T) {
	a, b := pair(t)
	toA, toB := newProxy(t, a.proc.Addr()), newProxy(t, b.proc.Addr())
	a.MasterPort, b.MasterPort = toB.port(), toA.port()
	a.kill(0)
	b.kill(0)
	writers := []*writer{
		{node: a, id: 1, keys: 10, shared: true}, {node: b, id: 2, keys: 10, shared: true},
		{node: a, id: 3, keys: 10}, {node: b, id: 4, keys: 10},
	}
	stop := startWriters(t, writers)
	misfortune(t, []*proxy{toA, toB}, []*node{a, b})
	t.Logf("%d updates were acknowledged", stop())
	contents := sameContents(t, a, b)
	for _, w := range writers[2:] {
		require.Positive(t, w.acked)
		w.check(t, contents)
	}
}

// pair are two servers that do not follow anybody yet.
func pair(t *testing.T) (a, b *node) {
	t.Helper()
	return newNode(t, settings{Database: "a.kct#lww=true", SID: 1}), newNode(t, settings{Database: "a.kct#lww=true", SID: 2})
}

// A ring of three, whose records pass each server once.
func TestRing(t *testing.T) {
	var nodes []*node
	for sid := range 3 {
		nodes = append(nodes, newNode(t, settings{Database: "a.kct#lww=true", SID: sid + 1}))
	}
	var nets []*proxy
	for i, n := range nodes {
		p := newProxy(t, n.proc.Addr())
		nets = append(nets, p)
		nodes[(i+1)%len(nodes)].MasterPort = p.port()
	}
	var writers []*writer
	for i, n := range nodes {
		n.kill(0)
		writers = append(writers, &writer{node: n, id: i + 1, keys: 10, shared: true}, &writer{node: n, id: i + 11, keys: 10})
	}
	stop := startWriters(t, writers)
	misfortune(t, nets, nodes)
	t.Logf("%d updates were acknowledged", stop())
	contents := sameContents(t, nodes...)
	for i, w := range writers {
		if i%2 == 1 {
			w.check(t, contents)
		}
	}
}
