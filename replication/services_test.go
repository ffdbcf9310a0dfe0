package replication_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/replication"
	"gotycoon/services/leader"
	"gotycoon/ulog"
)

const servicesDB = db.ServicesIndex

// newServer starts a node with a database file and services.
func newServer(t *testing.T, sid uint16) *node {
	t.Helper()
	return begin(t, &node{sid: sid, exprs: []string{filepath.Join(t.TempDir(), "a.kct")}, services: true})
}

// newPrimary starts one without a master.
func newPrimary(t *testing.T, sid uint16) *node {
	t.Helper()
	n := newServer(t, sid)
	require.NoError(t, n.role.Alone())
	return n
}

func (n *node) isPrimary() bool {
	_, err := n.role.Term()
	return err == nil
}

// quota writes a record that only the primary writes.
func (n *node) quota(name, value string) {
	n.t.Helper()
	require.True(n.t, n.isPrimary())
	n.set(servicesDB, "quota\x00"+name+"\x00state", value)
}

func (n *node) quotaIs(name, value string) func() bool {
	return func() bool { return n.get(servicesDB, "quota\x00"+name+"\x00state") == value }
}

func awaitEqualServices(t *testing.T, a, b *node) {
	t.Helper()
	eventually(t, "equal services", func() bool { return maps.Equal(a.contents(servicesDB), b.contents(servicesDB)) })
}

func TestServicesAreReplicated(t *testing.T) {
	a, b, c := newPrimary(t, 1), newServer(t, 2), newServer(t, 3)
	a.quota("x", "1")
	f, end := b.follow(master(a.port))
	g, _ := c.follow(master(b.port))
	caughtUp(t, f, a)
	caughtUp(t, g, b)
	eventually(t, "the record", c.quotaIs("x", "1"))
	require.False(t, b.isPrimary())
	require.False(t, c.isPrimary())
	b.set(servicesDB, "sequence\x001/2\x00", "100") // each server's own
	a.set(0, "between", "1")
	a.quota("x", "2")
	eventually(t, "the next one", c.quotaIs("x", "2"))
	eventually(t, "the other database", func() bool { return c.get(0, "between") == "1" })
	end()
	require.NoError(t, b.restart())
	a.quota("x", "3")
	b.follow(master(a.port))
	eventually(t, "after a restart", c.quotaIs("x", "3"))
	require.Equal(t, "100", b.get(servicesDB, "sequence\x001/2\x00"))
	require.Equal(t, "100", c.get(servicesDB, "sequence\x001/2\x00"))
	// The claim, three of x, the sequence, the other database.
	require.Len(t, b.logged(), 6, "nothing twice")
	require.Empty(t, b.log.lines("ERROR"))
}

// A server whose master has no services has its own.
func TestTheMasterHasNoServices(t *testing.T) {
	a := newNode(t, 1, filepath.Join(t.TempDir(), "a.kct"))
	b := newServer(t, 2)
	b.follow(master(a.port))
	eventually(t, "the primary", b.isPrimary)
	c := newServer(t, 3)
	m := newFakeMaster(t)
	c.follow(master(m.port))
	conn, _ := m.accept()
	_, err := conn.Write([]byte{byte(frame.Replication)}) // as an original server answers
	require.NoError(t, err)
	m.send(conn, 1)
	eventually(t, "the primary", c.isPrimary)
}

// An update of the services that comes from a master without any, in its log from before, is not
// for others; nor does everything that such a master has make this server one that has all of the
// primary's.
func TestWhatAMasterHadOfServices(t *testing.T) {
	a := newPrimary(t, 1)
	a.quota("x", "1")
	a.services = false
	require.NoError(t, a.restart())
	a.set(0, "last", "1")
	b := newServer(t, 2)
	f, end := b.follow(master(a.port))
	caughtUp(t, f, a)
	eventually(t, "the end", func() bool { return b.get(0, "last") == "1" })
	require.True(t, b.isPrimary())
	require.Empty(t, b.get(servicesDB, "primary\x001"))
	end()
	require.NoError(t, b.restart())
	b.set(servicesDB, "primary\x003", "7")
	require.NoError(t, b.restart())
	f, _ = b.follow(master(a.port))
	caughtUp(t, f, a)
	a.set(0, "one more", "1")
	caughtUp(t, f, a)
	eventually(t, "one more", func() bool { return b.get(0, "one more") == "1" })
	require.ErrorContains(t, b.role.Claim(false), "may be old")
	require.Empty(t, b.log.lines("ERROR"))

	c := newServer(t, 4)
	m := newFakeMaster(t)
	c.follow(master(m.port))
	conn, _ := m.accept()
	_, err := conn.Write([]byte{byte(frame.Replication)}) // as an original server answers
	require.NoError(t, err)
	m.send(conn, 10, message(5, claimOf(1, "9")), message(6, setOf(1, 0, "k")))
	eventually(t, "the other update", func() bool { return c.get(0, "k") == "v" })
	require.True(t, c.isPrimary())
}

func claimOf(sid uint16, term string) ulog.Update {
	return ulog.Update{SID: sid, DBID: servicesDB, Op: ulog.OpSet, Key: fmt.Appendf(nil, "primary\x00%d", sid), Value: []byte(never + term)}
}

// A master that gets services later has records of which nothing is in its log.
func TestAMasterGetsServices(t *testing.T) {
	a := newPrimary(t, 1)
	a.quota("x", "1")
	a.services = false
	require.NoError(t, a.restart())
	for i := range 1000 {
		a.set(0, fmt.Sprint("key ", i), strings.Repeat("v", 100))
	}
	b := newServer(t, 2)
	require.NoError(t, a.catalog.RemoveLogFiles(a.catalog.Log().Last()))
	f, end := b.follow(master(a.port))
	caughtUp(t, f, a)
	require.True(t, b.isPrimary())
	end()
	a.services = true
	require.NoError(t, a.restart())
	require.NoError(t, a.role.Claim(true))
	b.follow(master(a.port))
	eventually(t, "the copy", b.quotaIs("x", "1"))
	require.False(t, b.isPrimary())
}

// However the position is set: a claim that is skipped is heard of.
func TestAClaimIsNotSkipped(t *testing.T) {
	for name, skip := range map[string]func(n, m *node) (*replication.Follower, func()){
		"RTS file": func(n, m *node) (*replication.Follower, func()) {
			require.NoError(t, writeFile(n.rts(), fmt.Sprint(m.catalog.Log().Last())))
			return n.follow(master(m.port))
		},
		"tuned": func(n, m *node) (*replication.Follower, func()) {
			f, end := n.follow(replication.Master{})
			f.Tune("127.0.0.1", m.port, new(m.catalog.Log().Last()), nil)
			return f, end
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newPrimary(t, 1), newServer(t, 2)
			a.quota("x", "1")
			f, end := b.follow(master(a.port))
			caughtUp(t, f, a)
			eventually(t, "x", b.quotaIs("x", "1"))
			end()
			a.quota("x", "lost")
			require.NoError(t, b.role.Claim(false))
			b.quota("x", "2")
			require.NoError(t, a.restart())
			f, _ = skip(a, b)
			caughtUp(t, f, b)
			eventually(t, "the claim", func() bool { sid, _ := a.role.Primary(); return sid == 2 })
			eventually(t, "the copy", a.quotaIs("x", "2"))
			require.False(t, a.isPrimary())
			awaitEqualServices(t, b, a)
		})
	}
}

// A server that comes from a master that was behind to another one has all that that one has,
// although that is older than its position.
func TestServicesOfAnotherMaster(t *testing.T) {
	p, m1, m2, s := newPrimary(t, 1), newServer(t, 2), newServer(t, 3), newServer(t, 4)
	f1, end1 := m1.follow(master(p.port))
	f2, _ := m2.follow(master(p.port))
	p.quota("x", "1")
	caughtUp(t, f1, p)
	caughtUp(t, f2, p)
	eventually(t, "x", func() bool { return m1.quotaIs("x", "1")() && m2.quotaIs("x", "1")() })
	end1()
	p.quota("x", "2")
	eventually(t, "x", m2.quotaIs("x", "2"))
	f, end := s.follow(master(m1.port))
	caughtUp(t, f, m1)
	require.True(t, s.quotaIs("x", "1")())
	// An update that s has made moves its position on, and is not sent to it.
	own := ulog.Update{SID: 4, Op: ulog.OpSet, Key: []byte("later"), Value: make([]byte, 8)}
	require.NoError(t, m1.catalog.DB(0).Replicate(nil, []ulog.Update{own}, nil, nil))
	caughtUp(t, f, m1)
	end()
	require.NoError(t, s.restart())
	f, _ = s.follow(master(m2.port))
	eventually(t, "x", s.quotaIs("x", "2"))
	caughtUp(t, f, m2)
	awaitEqualServices(t, p, s)
}

// The primary, which lives, hears of another one's claim in the stream: what it did in vain goes,
// also from those who follow it.
func TestATakeoverWhileThePrimaryLives(t *testing.T) {
	a, b, c := newPrimary(t, 1), newServer(t, 2), newServer(t, 3)
	fa, _ := a.follow(master(b.port))
	fb, endB := b.follow(master(a.port))
	fc, _ := c.follow(master(a.port))
	a.quota("x", "1")
	caughtUp(t, fa, b)
	caughtUp(t, fb, a)
	caughtUp(t, fc, a)
	eventually(t, "x", func() bool { return b.quotaIs("x", "1")() && c.quotaIs("x", "1")() })
	endB()
	a.quota("x", "lost")
	a.quota("lost", "1")
	eventually(t, "more", c.quotaIs("lost", "1"))
	require.NoError(t, b.role.Claim(false))
	b.quota("x", "2")
	for _, n := range []*node{a, c} {
		eventually(t, "the copy", n.quotaIs("lost", ""))
		eventually(t, "x", n.quotaIs("x", "2"))
		awaitEqualServices(t, b, n)
		require.False(t, n.isPrimary())
	}
	require.NoError(t, b.restart())
	b.follow(master(a.port))
	eventually(t, "the primary", b.isPrimary)
	b.quota("x", "3")
	eventually(t, "x", func() bool { return a.quotaIs("x", "3")() && c.quotaIs("x", "3")() })
}

// A server with the ID of one that is gone has nothing, or an old backup: it gets what others have
// kept of the services.
func TestAServerIsReplaced(t *testing.T) {
	a, b := newPrimary(t, 1), newServer(t, 2)
	a.quota("x", "1")
	a.set(servicesDB, "lock\x00fence\x001", "1000001")
	f, end := b.follow(master(a.port))
	caughtUp(t, f, a)
	eventually(t, "x", b.quotaIs("x", "1"))
	end()
	a.shut()
	c := newServer(t, 1)
	f, _ = c.follow(master(b.port))
	caughtUp(t, f, b)
	eventually(t, "the copy", c.quotaIs("x", "1"))
	require.False(t, c.isPrimary())
	eventually(t, "the reason", func() bool { _, err := c.role.Term(); return strings.Contains(err.Error(), "has lost what it made") })
	require.Equal(t, fmt.Sprint(1000001+leader.AheadTokens), c.get(servicesDB, "lock\x00fence\x001"))
	eventually(t, "a claim", func() bool { return c.role.Claim(false) == nil })
	require.Equal(t, "2", c.get(servicesDB, "primary\x001"))
}

// Two servers with one ID: the second one is not the primary by what it has got from the first.
func TestAMasterWithTheSameID(t *testing.T) {
	a, b := newPrimary(t, 1), newServer(t, 1)
	a.quota("x", "1")
	b.follow(master(a.port))
	eventually(t, "the copy", b.quotaIs("x", "1"))
	a.set(0, "k", "v")
	_, err := b.role.Term()
	require.ErrorContains(t, err, "another one has its -sid 1 too")
	require.ErrorContains(t, b.role.Claim(false), "may be old")
}

// Whichever update is newer: what the former primary did in vain goes, also from a file that keeps
// versions.
func TestServicesThatKeepVersions(t *testing.T) {
	a, b := newServer(t, 1), newServer(t, 2)
	for i, n := range []*node{a, b} {
		n.shut()
		require.NoError(t, n.catalog.Close())
		n.expr = "#lww=true"
		// The other one's clock is behind.
		n.clock = func() time.Time { return time.Now().Add(-time.Duration(i) * time.Hour) }
		n.start()
	}
	require.NoError(t, a.role.Alone())
	a.quota("x", "1")
	f, end := b.follow(master(a.port))
	caughtUp(t, f, a)
	eventually(t, "x", b.quotaIs("x", "1"))
	end()
	a.quota("x", "lost")
	a.quota("lost", "1")
	require.NoError(t, b.role.Claim(false))
	b.quota("x", "2")
	f, _ = a.follow(master(b.port))
	caughtUp(t, f, b)
	eventually(t, "the copy", a.quotaIs("lost", ""))
	eventually(t, "x", a.quotaIs("x", "2"))
	b.quota("x", "3")
	eventually(t, "x", a.quotaIs("x", "3"))
	awaitEqualServices(t, a, b)
}

// Without a master a server is the primary, unless another was.
func TestWithoutAMaster(t *testing.T) {
	a := newServer(t, 1)
	f, _ := a.follow(replication.Master{})
	eventually(t, "the primary", a.isPrimary)
	b := newServer(t, 2)
	g, _ := b.follow(master(a.port))
	caughtUp(t, g, a)
	eventually(t, "the claim", func() bool { return b.get(servicesDB, "primary\x001") == "1" })
	g.Tune("", 0, nil, nil)
	eventually(t, "the end", func() bool { return g.Status().State == replication.None })
	require.False(t, b.isPrimary())
	require.NoError(t, b.role.Claim(false))
	f.Tune("127.0.0.1", b.port, nil, nil)
	eventually(t, "the other one's claim", func() bool { return !a.isPrimary() })
	require.True(t, b.isPrimary())
}

// A copy of the services' database is fetched with the others, when there is a gap, and by itself,
// when it is new beside them. What is this server's own stays.
func TestCopyOfTheServices(t *testing.T) {
	a, b := newPrimary(t, 1), newServer(t, 2)
	a.quota("old", "1")
	f, end := b.follow(master(a.port))
	caughtUp(t, f, a)
	eventually(t, "what is old", b.quotaIs("old", "1"))
	end()
	b.set(servicesDB, "sequence\x001/2\x00", "100")
	require.NoError(t, a.catalog.Services().Remove(nil, []byte("quota\x00old\x00state")))
	for i := range 500 {
		a.quota(fmt.Sprint("new", i), "v")
	}
	a.fillAndForget(1000)
	f, end = b.follow(master(a.port))
	caughtUp(t, f, a)
	eventually(t, "the copy", func() bool { return f.Status().State == replication.Streaming && b.get(0, "key 00999") != "" })
	require.Equal(t, "100", b.get(servicesDB, "sequence\x001/2\x00"))
	require.NoError(t, b.catalog.Services().Remove(nil, []byte("sequence\x001/2\x00")))
	awaitEqualServices(t, a, b)
	requireEqualContents(t, a, b)
	end()

	c := newNode(t, 3, filepath.Join(t.TempDir(), "a.kct"))
	f, end = c.follow(master(b.port))
	caughtUp(t, f, b)
	end()
	c.services = true
	require.NoError(t, c.restart())
	f, _ = c.follow(master(b.port))
	caughtUp(t, f, b)
	eventually(t, "the copy", c.quotaIs("new0", "v"))
	eventually(t, "the copy", c.quotaIs("new499", "v"))
	awaitEqualServices(t, b, c)
}

// A server that had its services' database, or another one, away for some time, lacks what has come
// meanwhile.
func TestDatabasesThatWereAway(t *testing.T) {
	a, b := newPrimary(t, 1), newServer(t, 2)
	a.quota("x", "1")
	f, end := b.follow(master(a.port))
	caughtUp(t, f, a)
	eventually(t, "x", b.quotaIs("x", "1"))
	end()
	b.services = false
	require.NoError(t, b.restart())
	a.quota("x", "2")
	a.set(0, "meanwhile", "1")
	f, end = b.follow(master(a.port))
	eventually(t, "the other database", func() bool { return b.get(0, "meanwhile") == "1" })
	caughtUp(t, f, a)
	end()
	b.services = true
	require.NoError(t, b.restart())
	require.True(t, b.quotaIs("x", "1")())
	_, end = b.follow(master(a.port))
	eventually(t, "the copy", b.quotaIs("x", "2"))
	awaitEqualServices(t, a, b)
	end()

	second := filepath.Join(t.TempDir(), "b.kct")
	c, d := newNode(t, 3, filepath.Join(t.TempDir(), "a.kct"), filepath.Join(t.TempDir(), "b.kct")), newNode(t, 4, filepath.Join(t.TempDir(), "a.kct"), second)
	c.set(1, "old", "1")
	_, end = d.follow(master(c.port))
	eventually(t, "old", func() bool { return d.get(1, "old") == "1" })
	end()
	d.exprs = d.exprs[:1]
	require.NoError(t, d.restart())
	require.NoError(t, c.catalog.DB(1).Remove(nil, []byte("old")))
	c.set(0, "meanwhile", "1")
	_, end = d.follow(master(c.port))
	eventually(t, "the first database", func() bool { return d.get(0, "meanwhile") == "1" })
	end()
	d.exprs = append(d.exprs, second)
	require.NoError(t, d.restart())
	d.follow(master(c.port))
	eventually(t, "the copy", func() bool { return d.get(1, "old") == "" })
	requireEqualContents(t, c, d)
}

// The primary fails, another server takes over, and the former one comes back with changes that
// nobody has had: they are gone then, on all servers that had heard of them.
func TestTheFormerPrimaryComesBack(t *testing.T) {
	a, b, c := newPrimary(t, 1), newServer(t, 2), newServer(t, 3)
	fb, endB := b.follow(master(a.port))
	fc, endC := c.follow(master(a.port))
	a.quota("x", "1")
	a.quota("y", "1")
	caughtUp(t, fb, a)
	caughtUp(t, fc, a)
	eventually(t, "x", func() bool { return b.quotaIs("y", "1")() && c.quotaIs("y", "1")() })
	endB()
	a.quota("x", "lost")
	a.quota("lost", "1")
	eventually(t, "more", c.quotaIs("lost", "1"))
	endC()
	a.shut()
	require.NoError(t, b.role.Claim(false))
	b.quota("x", "2")

	var open atomic.Bool // before, copies fail
	way := newCutter(t, b.port, func() int64 {
		if open.Load() {
			return 1 << 62
		}
		return 330
	})
	fc, endC = c.follow(master(way.port))
	eventually(t, "the claim", func() bool { sid, _ := c.role.Primary(); return sid == 2 })
	eventually(t, "a copy that fails", func() bool { return fc.Status().State == replication.Copying || c.quotaIs("lost", "")() })
	endC()
	require.NoError(t, c.restart()) // what is due is not forgotten
	open.Store(true)
	fc, _ = c.follow(master(b.port))
	caughtUp(t, fc, b)
	eventually(t, "the copy", c.quotaIs("lost", ""))
	eventually(t, "x", c.quotaIs("x", "2"))
	awaitEqualServices(t, b, c)

	require.NoError(t, a.restart())
	fa, _ := a.follow(master(c.port))
	caughtUp(t, fa, c)
	eventually(t, "the copy", a.quotaIs("lost", ""))
	require.False(t, a.isPrimary())
	b.follow(master(a.port)) // a ring
	b.quota("x", "3")
	eventually(t, "x", a.quotaIs("x", "3"))
	awaitEqualServices(t, b, a)
	awaitEqualServices(t, b, c)
	require.True(t, b.isPrimary())
	require.NoError(t, b.role.CaughtUp())
	require.True(t, b.isPrimary())
	a.set(0, "round", "1")
	eventually(t, "round", func() bool { return b.get(0, "round") == "1" && c.get(0, "round") == "1" })
	b.quota("x", "4")
	eventually(t, "x", a.quotaIs("x", "4"))
}
