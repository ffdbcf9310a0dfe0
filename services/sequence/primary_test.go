package sequence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/services/leader"
	"gotycoon/ulog"
)

// standby is a server whose services' database is a copy of that of server 1.
type standby struct {
	t    *testing.T
	db   *db.DB
	role *leader.Role
}

func newStandby(t *testing.T) *standby {
	t.Helper()
	s := &standby{t: t, db: openDB(t, t.TempDir())}
	var err error
	s.role, err = leader.Open(leader.Options{DB: s.db, SID: 2})
	require.NoError(t, err)
	s.receive("primary\x001", "1")
	require.NoError(t, s.role.CaughtUp())
	return s
}

// receive stores what server 1 has written.
func (s *standby) receive(key, value string) { s.t.Helper(); s.receiveFrom(1, key, value) }

func (s *standby) receiveFrom(sid uint16, key, value string) {
	s.t.Helper()
	s.take(ulog.Update{SID: sid, Op: ulog.OpSet, Key: []byte(key), Value: append([]byte{0xff, 0xff, 0xff, 0xff, 0xff}, value...)})
}

func (s *standby) take(u ulog.Update) {
	s.t.Helper()
	ups := []ulog.Update{u}
	_, err := s.role.Prepare(ups)
	require.NoError(s.t, err)
	require.NoError(s.t, s.role.Replicate(nil, ups, nil, false))
}

func (c *client) refused(path, reason string) {
	c.t.Helper()
	status, body := c.get(path)
	require.Equal(c.t, 503, status, path)
	require.Contains(c.t, body, reason)
}

// One connection sees a quota on a server that is no primary, then is one, then is none again.
func TestAQuotaIsChangedOnThePrimaryOnly(t *testing.T) {
	s := newStandby(t)
	s.receive("quota\x00\x00state", "70 2 1")
	s.receive("quota\x00\x00journal\x00\x00\x00\x00\x00\x00\x00\x00\x02", "20")
	c := newClient(t, startQuota(t, QuotaOptions{DB: s.db, Limit: 100, Primary: s.role}))
	c.is("/query", "70")
	for _, path := range []string{"/apply?amt=1", "/cancel?jnlsno=2", "/increase?amt=1", "/decrease?amt=1", "/empty", "/increase?amt=1&name=new"} {
		c.refused(path, "server 1 is the primary")
	}
	status, _ := c.get("/query?name=new")
	require.Equal(t, 404, status, "it has not come to be")
	s.receive("quota\x00\x00state", "65 3 1")
	c.is("/query", "65")
	require.NoError(t, s.role.Claim(true))
	c.is("/apply?amt=5", "4 60")
	c.is("/cancel?jnlsno=2", "5 80")
	c.is("/apply?amt=5&id=a", "6 75")
	s.receive("quota\x00\x00state", "1 3 1") // of one that has not heard of it yet
	c.is("/query", "75")

	s.receive("primary\x001", "9")
	s.receive("quota\x00\x00state", "50 7 1")
	c.is("/query", "50")
	c.refused("/apply?amt=1", "server 1 is the primary")
	require.NoError(t, s.role.Claim(true))
	c.is("/apply?amt=1", "8 49")
	c.is("/apply?amt=5&id=a", "6 75")
}

func TestQuotasAreListedOnAStandby(t *testing.T) {
	s := newStandby(t)
	q, err := NewQuotaServer(QuotaOptions{DB: s.db, Limit: 100, Primary: s.role})
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	s.receive("quota\x00a\x00state", "70 2 1")
	for _, want := range []int64{70, 60} {
		s.receive("quota\x00a\x00state", fmt.Sprintf("%d 2 1", want))
		list, err := q.List(10)
		require.NoError(t, err)
		require.Equal(t, []Quota{{Remaining: 100, Open: true}, {Name: "a", Remaining: want, Journal: 2, Open: true}}, list)
	}
	require.Equal(t, QuotaStats{Names: 2, Remaining: 100}, q.Stats())
}

// However the primary changes while calls are made: what is in the records when another server's updates come is what has been answered.
func TestNothingIsAnsweredThatTheNextPrimaryDoesNotGet(t *testing.T) {
	s := newStandby(t)
	require.NoError(t, s.role.Claim(true))
	addr := startQuota(t, QuotaOptions{DB: s.db, Limit: 1 << 40, Primary: s.role})
	var callers sync.WaitGroup
	defer callers.Wait()
	quit := make(chan struct{})
	defer close(quit)
	newest := make([]uint64, 4) // journal number that each has been given last; guarded by mu
	var mu sync.Mutex
	for i := range newest {
		c := newClient(t, addr)
		callers.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				if status, body := c.get("/apply?amt=1"); status == 200 {
					number, _, _ := strings.Cut(body, " ")
					n, _ := strconv.ParseUint(number, 10, 64)
					mu.Lock()
					newest[i] = max(newest[i], n)
					mu.Unlock()
				}
			}
		})
	}
	before := uint64(0)
	for term := 10; term < 60; term += 2 {
		waitFor(t, "a call of this term", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return newest[0] > before
		})
		s.receive("primary\x001", strconv.Itoa(term))
		value, _, err := s.db.Get(nil, nil, []byte("quota\x00\x00state"))
		require.NoError(t, err)
		var remaining, journal uint64
		_, err = fmt.Sscan(string(value), &remaining, &journal)
		require.NoError(t, err)
		mu.Lock()
		before = journal + 1000
		for _, n := range newest {
			require.LessOrEqual(t, n, journal)
		}
		mu.Unlock()
		s.receive("quota\x00\x00state", fmt.Sprintf("%d %d 1", remaining-1000, journal+1000)) // its first call
		require.NoError(t, s.role.Claim(true))
		q := newClient(t, addr)
		_, body := q.get("/query")
		left, err := strconv.ParseUint(strings.TrimSpace(body), 10, 64)
		require.NoError(t, err)
		require.LessOrEqual(t, left, remaining-1000)
	}
}

// Two servers with one number: only the primary gives out numbers, above those of the other.
func TestASharedServerNumber(t *testing.T) {
	s := newStandby(t)
	c := newClock(1_800_000_000)
	r := &records{db: s.db, serverNo: 1, sid: 2}
	open := func(name string) *sequence {
		q, err := openSequence(name, r, s.role, c.now)
		require.NoError(t, err)
		return q
	}
	s.receive("sequence\x0012/1\x00", "1900000000") // another number, that begins alike
	own := open("")
	first, err := own.fetch(1)
	require.NoError(t, err, "nobody else has used it")
	require.NoError(t, end(own))

	s.receive("sequence\x001/1\x00other", "1900000000") // it has not used this name, but may at any time
	own = open("")
	_, err = own.fetch(1)
	require.ErrorAs(t, err, new(*leader.Standby))

	s.receive("sequence\x001/1\x00", "1800000100")
	_, err = own.fetch(1)
	require.ErrorContains(t, err, "another server has the number 1 too, the one with -sid 1, and only the primary gives out numbers then: server 1 is the primary")
	require.ErrorAs(t, err, new(*leader.Standby))
	require.NoError(t, s.role.Claim(true))
	second, err := own.fetch(1)
	require.NoError(t, err)
	require.Greater(t, second, first)
	require.GreaterOrEqual(t, second.second(), uint64(1_800_000_100+leader.AheadSeconds))
	require.NoError(t, end(own))

	own = open("")
	third, err := own.fetch(1)
	require.NoError(t, err)
	require.Greater(t, third, second)
	require.Less(t, third.second(), uint64(1_800_000_110+leader.AheadSeconds), "it goes on where it was")
	own.renewals.Wait()
}

// A server that has never used its number may have it from another one of which it has not heard yet.
func TestAServerNumberThatMayBeShared(t *testing.T) {
	d := openDB(t, t.TempDir())
	role, err := leader.Open(leader.Options{DB: d, SID: 2})
	require.NoError(t, err)
	s, err := NewSequenceServer(SequenceOptions{DB: d, ServerNo: 1, SID: 2, Primary: role})
	require.NoError(t, err)
	q, err := s.sequences.get(nil, true)
	require.NoError(t, err)
	_, err = q.fetch(1)
	require.ErrorContains(t, err, "another server may have the number 1 too: this server waits for what its master has")
	require.ErrorAs(t, err, new(*leader.Standby))
	require.NoError(t, role.CaughtUp())
	_, err = q.fetch(1)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	again, err := leader.Open(leader.Options{DB: d, SID: 2})
	require.NoError(t, err)
	require.Error(t, again.Heard())
	q, err = openSequence("new", s.records, again, time.Now)
	require.NoError(t, err)
	_, err = q.fetch(1)
	require.NoError(t, err, "it is its own, as it was before")
	q.renewals.Wait()
}

// The primary tells the others of its number before anybody asks for one.
func TestThePrimaryAnnouncesItsServerNumber(t *testing.T) {
	d := openDB(t, t.TempDir())
	role, err := leader.Open(leader.Options{DB: d, SID: 1})
	require.NoError(t, err)
	s, err := NewSequenceServer(SequenceOptions{DB: d, ServerNo: 7, SID: 1, Primary: role})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, role.Alone())
	value, _, err := d.Get(nil, nil, []byte("sequence\x007/1\x00"))
	require.NoError(t, err)
	require.Equal(t, "0", string(value))
	list, err := s.List(10)
	require.NoError(t, err)
	require.Empty(t, list)
}

// A server that is the primary again, after another one, begins above the other's numbers at once.
func TestNumbersOfAPrimaryThatComesBack(t *testing.T) {
	s := newStandby(t)
	c := newClock(1_800_000_000)
	server, err := NewSequenceServer(SequenceOptions{DB: s.db, ServerNo: 1, SID: 2, Primary: s.role, Now: c.now})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	require.NoError(t, s.role.Claim(true))
	q, err := server.sequences.get(nil, true)
	require.NoError(t, err)
	_, err = q.fetch(1)
	require.NoError(t, err)
	s.receive("primary\x001", "9")
	s.receive("sequence\x001/1\x00", "1800000068")
	_, err = q.fetch(1)
	require.ErrorAs(t, err, new(*leader.Standby))
	require.NoError(t, s.role.Claim(true))
	n, err := q.fetch(1)
	require.NoError(t, err)
	require.Greater(t, n.second(), uint64(1_800_000_068))
}

// Whichever of the records of a call have come when the primary is lost, they come one after the other: the call was carried out as a whole, or
// not at all.
func TestACallOfWhichAPartHasCome(t *testing.T) {
	dir := t.TempDir()
	catalog, err := db.Open([]string{filepath.Join(dir, "services.kct")}, db.Options{LogDir: filepath.Join(dir, "ulog"), SID: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, catalog.Close()) })
	from := catalog.DB(0)
	c := newClient(t, startQuota(t, QuotaOptions{DB: from, Limit: 100}))
	c.is("/apply?amt=10", "1 90")
	before := len(logged(t, catalog.Log()))
	for _, call := range []struct{ path, reply, left string }{
		{"/apply?amt=5&id=a", "2 85", "85"}, {"/cancel?jnlsno=1&id=b", "3 95", "95"}, {"/increase?amt=7&id=c%0A", "102", "102"},
		{"/apply?amt=2", "4 100", "100"}, {"/cancel?jnlsno=4", "5 102", "102"},
	} {
		c.is(call.path, call.reply)
		sets := logged(t, catalog.Log())
		require.Greater(t, len(sets), before+1)
		for n := before + 1; n <= len(sets); n++ {
			s := newStandby(t)
			for _, u := range sets[:n] {
				s.take(u)
			}
			require.NoError(t, s.role.Claim(true))
			d := newClient(t, startQuota(t, QuotaOptions{DB: s.db, Limit: 100, Primary: s.role}))
			d.is("/query", call.left)
			require.Equal(t, journals(t, from), journals(t, s.db), "%s, %d of %d records", call.path, n-before, len(sets)-before)
			if strings.Contains(call.path, "id=") {
				d.is(call.path, call.reply)
				d.is("/query", call.left)
			}
		}
		before = len(sets)
	}
}

// logged returns the updates of a log.
func logged(t *testing.T, log *ulog.Log) (ups []ulog.Update) {
	t.Helper()
	r, err := log.NewReader(0)
	require.NoError(t, err)
	defer r.Close()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return ups
		}
		require.NoError(t, err)
		u, err := ulog.ParseMessage(bytes.Clone(e.Message))
		require.NoError(t, err)
		ups = append(ups, u)
	}
}

// journals are the journals of the quota without a name.
func journals(t *testing.T, d *db.DB) string {
	t.Helper()
	var text strings.Builder
	require.NoError(t, (&records{db: d}).writeJournals(&text, ""))
	return text.String()
}

// An id that has expired is not known again.
func TestALastCallWhoseIDHasExpired(t *testing.T) {
	d := openDB(t, t.TempDir())
	require.NoError(t, d.Set(nil, quotaKey("", "state"), []byte("95 1 1\napply 5 1700000000\n1 95\na"), record.Never))
	c := newClient(t, startQuota(t, QuotaOptions{DB: d, Limit: 100}))
	c.is("/apply?amt=5&id=a", "2 90")
	require.Equal(t, "1 5\n2 5\n", journals(t, d))
	require.NoError(t, d.Set(nil, quotaKey("n", "state"), []byte("95 1 1\nwhat"), record.Never))
	status, body := c.get("/apply?amt=5&name=n")
	require.Equal(t, 500, status)
	require.Contains(t, body, "is damaged")
}

// What another server did as the primary is exported when this one is it again, although it is not used any more.
func TestExportOfAPrimaryThatComesBack(t *testing.T) {
	s := newStandby(t)
	require.NoError(t, s.role.Claim(true))
	file := filepath.Join(t.TempDir(), "journals")
	q, err := NewQuotaServer(QuotaOptions{DB: s.db, Limit: 10, Export: file, Primary: s.role})
	require.NoError(t, err)
	l := listen(t)
	q.Start(l)
	c := newClient(t, l.Addr().String())
	c.is("/apply?amt=10", "1 0")
	exported := func(text string) {
		waitFor(t, "the export", func() bool { got, err := os.ReadFile(file); return err == nil && string(got) == text })
	}
	exported("1 10\n")
	for term := 9; term < 30; term += 10 {
		s.receive("primary\x001", strconv.Itoa(term))
		s.receive("quota\x00\x00journal\x00\x00\x00\x00\x00\x00\x00\x00"+string(rune(term)), "7")
		require.NoError(t, s.role.Claim(true))
		text := "1 10\n9 7\n"
		if term > 9 {
			text += "19 7\n"
		}
		if term > 19 {
			text += "29 7\n"
		}
		exported(text)
	}
	s.receive("primary\x001", "99")
	require.NoError(t, q.Close())
	require.NoError(t, s.role.Claim(true), "while the server stops")
}

// A number that another server turns out to have is not given out any more as soon as the next bound is due.
func TestASharedServerNumberIsNoticed(t *testing.T) {
	s := newStandby(t)
	c := newClock(1_800_000_000)
	q, err := openSequence("", &records{db: s.db, serverNo: 1, sid: 2}, s.role, c.now)
	require.NoError(t, err)
	_, err = q.fetch(1)
	require.NoError(t, err)
	s.receive("sequence\x001/1\x00", "1800000004")
	c.seconds.Add(reserveSeconds)
	_, err = q.fetch(1)
	require.ErrorAs(t, err, new(*leader.Standby))
	q.renewals.Wait()
}

// Records of before there were server IDs in their keys are this server's.
func TestABoundWithoutAServerID(t *testing.T) {
	d := openDB(t, t.TempDir())
	require.NoError(t, d.Set(nil, []byte("sequence\x001\x00x"), []byte("1800000500"), record.Never))
	c := newClock(1_800_000_000)
	s, err := openSequence("x", &records{db: d, serverNo: 1, sid: 3}, nil, c.now)
	require.NoError(t, err)
	first, err := s.fetch(1)
	require.NoError(t, err)
	require.GreaterOrEqual(t, first.second(), uint64(1_800_000_500))
	s.renewals.Wait()
}

// The HTTP port tells why no number is given out.
func TestFetchOnAStandbyWithTheSameNumber(t *testing.T) {
	s := newStandby(t)
	s.receive("sequence\x001/1\x00", strconv.FormatInt(time.Now().Unix(), 10))
	c := newClient(t, startSequence(t, SequenceOptions{DB: s.db, ServerNo: 1, SID: 2, Primary: s.role}))
	c.refused("/fetch", "another server has the number 1 too")
	c = newClient(t, startSequence(t, SequenceOptions{DB: s.db, ServerNo: 2, SID: 2, Primary: s.role}))
	status, _ := c.get("/fetch")
	require.Equal(t, 200, status)
}

// Nothing is exported by a server that only keeps a copy.
func TestAStandbyExportsNothing(t *testing.T) {
	s := newStandby(t)
	file := filepath.Join(t.TempDir(), "journals")
	c := newClient(t, startQuota(t, QuotaOptions{DB: s.db, Limit: 1, Export: file, Primary: s.role}))
	c.refused("/empty", "server 1 is the primary")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, text)
}
