package quota

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

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/services/internal/servicetest"
	"gotycoon/services/internal/webport"
	"gotycoon/ulog"
)

// One connection sees a quota on a server that is no primary, then is one, then is none again.
func TestAQuotaIsChangedOnThePrimaryOnly(t *testing.T) {
	s := servicetest.NewStandby(t)
	s.Receive("quota\x00\x00state", "70 2 1")
	s.Receive("quota\x00\x00journal\x00\x00\x00\x00\x00\x00\x00\x00\x02", "20")
	c := servicetest.NewClient(t, start(t, Options{DB: s.DB, Limit: 100, Primary: s.Role}))
	c.Is("/query", "70")
	for _, path := range []string{"/apply?amt=1", "/cancel?jnlsno=2", "/increase?amt=1", "/decrease?amt=1", "/empty", "/increase?amt=1&name=new"} {
		c.Refused(path, "server 1 is the primary")
	}
	status, _ := c.Get("/query?name=new")
	require.Equal(t, 404, status, "it has not come to be")
	s.Receive("quota\x00\x00state", "65 3 1")
	c.Is("/query", "65")
	require.NoError(t, s.Role.Claim(true))
	c.Is("/apply?amt=5", "4 60")
	c.Is("/cancel?jnlsno=2", "5 80")
	c.Is("/apply?amt=5&id=a", "6 75")
	s.Receive("quota\x00\x00state", "1 3 1") // of one that has not heard of it yet
	c.Is("/query", "75")

	s.Receive("primary\x001", "9")
	s.Receive("quota\x00\x00state", "50 7 1")
	c.Is("/query", "50")
	c.Refused("/apply?amt=1", "server 1 is the primary")
	require.NoError(t, s.Role.Claim(true))
	c.Is("/apply?amt=1", "8 49")
	c.Is("/apply?amt=5&id=a", "6 75")
}

func TestQuotasAreListedOnAStandby(t *testing.T) {
	s := servicetest.NewStandby(t)
	q, err := New(Options{DB: s.DB, Limit: 100, Primary: s.Role})
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	s.Receive("quota\x00a\x00state", "70 2 1")
	for _, want := range []int64{70, 60} {
		s.Receive("quota\x00a\x00state", fmt.Sprintf("%d 2 1", want))
		list, err := q.List(10)
		require.NoError(t, err)
		require.Equal(t, []Quota{{Remaining: 100, Open: true}, {Name: "a", Remaining: want, Journal: 2, Open: true}}, list)
	}
	require.Equal(t, Stats{Names: 2, Remaining: 100}, q.Stats())
}

// However the primary changes while calls are made: what is in the records when another server's
// updates come is what has been answered.
func TestNothingIsAnsweredThatTheNextPrimaryDoesNotGet(t *testing.T) {
	s := servicetest.NewStandby(t)
	require.NoError(t, s.Role.Claim(true))
	addr := start(t, Options{DB: s.DB, Limit: 1 << 40, Primary: s.Role})
	var callers sync.WaitGroup
	defer callers.Wait()
	quit := make(chan struct{})
	defer close(quit)
	newest := make([]uint64, 4) // journal number that each has been given last; guarded by mu
	var mu sync.Mutex
	for i := range newest {
		c := servicetest.NewClient(t, addr)
		callers.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				if status, body := c.Get("/apply?amt=1"); status == 200 {
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
		servicetest.WaitFor(t, "a call of this term", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return newest[0] > before
		})
		s.Receive("primary\x001", strconv.Itoa(term))
		value, _, err := s.DB.Get(nil, nil, []byte("quota\x00\x00state"))
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
		s.Receive("quota\x00\x00state", fmt.Sprintf("%d %d 1", remaining-1000, journal+1000)) // its first call
		require.NoError(t, s.Role.Claim(true))
		q := servicetest.NewClient(t, addr)
		_, body := q.Get("/query")
		left, err := strconv.ParseUint(strings.TrimSpace(body), 10, 64)
		require.NoError(t, err)
		require.LessOrEqual(t, left, remaining-1000)
	}
}

// Whichever of the records of a call have come when the primary is lost, they come one after the
// other: the call was carried out as a whole, or not at all.
func TestACallOfWhichAPartHasCome(t *testing.T) {
	catalog, from := logging(t)
	c := servicetest.NewClient(t, start(t, Options{DB: from, Limit: 100}))
	c.Is("/apply?amt=10", "1 90")
	before := len(logged(t, catalog.Log()))
	for _, call := range []struct{ path, reply, left string }{
		{"/apply?amt=5&id=a", "2 85", "85"}, {"/cancel?jnlsno=1&id=b", "3 95", "95"}, {"/increase?amt=7&id=c%0A", "102", "102"},
		{"/cancel?jnlsno=2", "4 107", "107"},
	} {
		c.Is(call.path, call.reply)
		sets := logged(t, catalog.Log())
		require.Greater(t, len(sets), before+1)
		for n := before + 1; n <= len(sets); n++ {
			s := servicetest.NewStandby(t)
			for _, u := range sets[:n] {
				s.Take(u)
			}
			require.NoError(t, s.Role.Claim(true))
			d := servicetest.NewClient(t, start(t, Options{DB: s.DB, Limit: 100, Primary: s.Role}))
			d.Is("/query", call.left)
			require.Equal(t, journals(t, from), journals(t, s.DB), "%s, %d of %d records", call.path, n-before, len(sets)-before)
			if strings.Contains(call.path, "id=") {
				d.Is(call.path, call.reply)
				d.Is("/query", call.left)
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
	require.NoError(t, (&records{Records: webport.Records{DB: d}}).writeJournals(&text, ""))
	return text.String()
}

// An id that has expired is not known again.
func TestALastCallWhoseIDHasExpired(t *testing.T) {
	d := servicetest.OpenDB(t, t.TempDir())
	require.NoError(t, d.Set(nil, quotaKey("", "state"), []byte("95 1 1\napply 5 1700000000\n1 95\na"), record.Never))
	c := servicetest.NewClient(t, start(t, Options{DB: d, Limit: 100}))
	c.Is("/apply?amt=5&id=a", "2 90")
	require.Equal(t, "1 5\n2 5\n", journals(t, d))
	require.NoError(t, d.Set(nil, quotaKey("n", "state"), []byte("95 1 1\nwhat"), record.Never))
	status, body := c.Get("/apply?amt=5&name=n")
	require.Equal(t, 500, status)
	require.Contains(t, body, "is damaged")
}

// What another server did as the primary is exported when this one is it again, although it is not
// used any more.
func TestExportOfAPrimaryThatComesBack(t *testing.T) {
	s := servicetest.NewStandby(t)
	require.NoError(t, s.Role.Claim(true))
	file := filepath.Join(t.TempDir(), "journals")
	q, err := New(Options{DB: s.DB, Limit: 10, Export: file, Primary: s.Role})
	require.NoError(t, err)
	l := servicetest.Listen(t)
	q.Start(l)
	c := servicetest.NewClient(t, l.Addr().String())
	c.Is("/apply?amt=10", "1 0")
	exported := func(text string) {
		servicetest.WaitFor(t, "the export", func() bool { got, err := os.ReadFile(file); return err == nil && string(got) == text })
	}
	exported("1 10\n")
	for term := 9; term < 30; term += 10 {
		s.Receive("primary\x001", strconv.Itoa(term))
		s.Receive("quota\x00\x00journal\x00\x00\x00\x00\x00\x00\x00\x00"+string(rune(term)), "7")
		s.Receive("quota\x00\x00state", fmt.Sprintf("0 %d 0", term))
		require.NoError(t, s.Role.Claim(true))
		text := "1 10\n9 7\n"
		if term > 9 {
			text += "19 7\n"
		}
		if term > 19 {
			text += "29 7\n"
		}
		exported(text)
	}
	s.Receive("primary\x001", "99")
	require.NoError(t, q.Close())
	require.NoError(t, s.Role.Claim(true), "while the server stops")
}

// Nothing is exported by a server that only keeps a copy.
func TestAStandbyExportsNothing(t *testing.T) {
	s := servicetest.NewStandby(t)
	file := filepath.Join(t.TempDir(), "journals")
	c := servicetest.NewClient(t, start(t, Options{DB: s.DB, Limit: 1, Export: file, Primary: s.Role}))
	c.Refused("/empty", "server 1 is the primary")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, text)
}
