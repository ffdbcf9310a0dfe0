package cluster

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/history"
)

// rounds is how many misfortunes there are.
func rounds(t *testing.T, usual int) int {
	t.Helper()
	text, ok := os.LookupEnv("GOTYCOON_CLUSTER")
	if !ok {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "GOTYCOON_CLUSTER is a number of rounds")
	return n
}

// together has a test run beside the others, which wait most of the time; in long runs each test has
// the machine for itself.
func together(t *testing.T) {
	if _, long := os.LookupEnv("GOTYCOON_CLUSTER"); !long {
		t.Parallel()
	}
}

func seed(t *testing.T) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if text, ok := os.LookupEnv("GOTYCOON_CLUSTER_SEED"); ok {
		var err error
		n, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("GOTYCOON_CLUSTER_SEED=%d", n)
	return n
}

// perAct is how many misfortunes happen before everything is checked.
const perAct = 10

func TestThreeMembers(t *testing.T) {
	together(t)
	perform(t, newCluster(t, 3, false), rounds(t, 3))
}

func TestFiveMembers(t *testing.T) {
	if _, long := os.LookupEnv("GOTYCOON_CLUSTER"); !long {
		t.Skip("five servers for some seconds: GOTYCOON_CLUSTER=ROUNDS runs them")
	}
	perform(t, newCluster(t, 5, false), rounds(t, 0))
}

func TestTwoMembersAndAWitness(t *testing.T) {
	together(t)
	perform(t, newCluster(t, 2, true), rounds(t, 2))
}

// TestServices: clients of locks, sequences and counters have one address, and records are updated
// on whatever member clients reach. The members speak TLS with each other.
func TestServices(t *testing.T) {
	together(t)
	c := prepareCluster(t, 3, false)
	c.serve()
	c.secure()
	c.begin()
	perform(t, c, rounds(t, 1))
}

// TestEtcd: the votes are held by an etcd.
func TestEtcd(t *testing.T) {
	together(t)
	c := prepareCluster(t, 2, false)
	c.etcd = startEtcd(t)
	c.begin()
	perform(t, c, rounds(t, 1))
}

// perform has misfortunes happen to a cluster under load, and checks everything now and then.
func perform(t *testing.T, c *cluster, rounds int) {
	t.Helper()
	n := seed(t)
	did, gaps := map[string]int{}, &figures{}
	begun := time.Now()
	rnd := rand.New(rand.NewPCG(n, 1))
	s := &stage{cluster: c, rnd: rnd, only: os.Getenv("GOTYCOON_CLUSTER_ONLY"), paused: map[*member]bool{}}
	total := tally{}
	for act := 0; rounds > 0 && !t.Failed(); act++ {
		s.play = start(c, fmt.Sprintf("act%d", act), rnd.Uint64())
		func() {
			defer s.play.end()
			s.play.serves(t)
			for range min(rounds, perAct) {
				s.round(t, did, gaps)
			}
		}()
		rounds -= perAct
		judge(t, c, s.play, &total)
		s.clean(t)
		t.Logf("act %d after %v: %v, %d terms; %v, given out %v\n%v", act, time.Since(begun).Round(time.Second), total, len(c.leaders), did, c.issued, gaps)
	}
}

// clean empties the databases between two acts, and removes the logs that are not needed.
func (s *stage) clean(t *testing.T) {
	t.Helper()
	require.True(t, eventually(patience, func() bool {
		w, err := history.DialHTTP(s.play.primary().port, askLimit)
		if err != nil {
			return false
		}
		defer w.Close()
		status, _, err := w.Procedure("clear", statusLimit)
		return err == nil && status == http.StatusOK
	}), "the databases cannot be emptied")
	sameEverywhere(t, s.data())
	for _, m := range s.data() {
		s.forget(m)
	}
}

// tally counts what was checked.
type tally struct{ events, doubted, acknowledged, records int }

func (y tally) String() string {
	return fmt.Sprintf("%d requests (%d of unknown outcome), %d updates in ledgers, %d records", y.events, y.doubted, y.acknowledged, y.records)
}

// judge checks what the clients were told.
func judge(t *testing.T, c *cluster, p *play, total *tally) {
	t.Helper()
	p.checkIssued(t)
	has := sameEverywhere(t, c.data())
	total.records += len(has)
	for _, l := range p.ledgers {
		total.acknowledged += l.acknowledged()
		l.check(t, has)
	}
	var events []history.Event
	keys := map[string]bool{}
	for _, a := range p.clients {
		events = append(events, a.events...)
		for _, e := range a.events {
			keys[e.Call.Key] = true
		}
	}
	now := time.Since(p.began)
	for key := range keys { // what is there in the end is a last read
		r := history.Reply{Certainty: history.Done, Value: has[key]}
		r.OK = r.Value != ""
		events = append(events, history.Event{Call: history.Call{Verb: history.Get, Key: key}, Reply: r, Began: now, Over: now + 1, Client: -1, Where: "all members"})
	}
	counted, doubted := history.Check(t, events)
	total.events += counted
	total.doubted += doubted
	for _, m := range c.members {
		if m.proc != nil {
			c.note(m.index, m.proc.Output())
		}
	}
}
