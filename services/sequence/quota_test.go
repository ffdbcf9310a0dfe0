package sequence

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/internal/vfs"
)

func TestAnyJournalIsCancelledOnceAndOnlyOnce(t *testing.T) {
	c := newClient(t, startQuota(t, QuotaOptions{Limit: 5000}))
	for i := 1; i <= 1100; i++ {
		c.is("/apply?amt=2", fmt.Sprintf("%d %d", i, 5000-2*i))
	}
	for i, journal := range []int{1, 998, 1100, 50} {
		c.is(fmt.Sprintf("/cancel?jnlsno=%d", journal), fmt.Sprintf("%d %d", 1101+i, 2800+2*(i+1)))
		c.is(fmt.Sprintf("/cancel?jnlsno=%d", journal), "0")
	}
	c.is("/cancel?jnlsno=1101", "0")
	c.is("/cancel?jnlsno=1105", "0")
	c.is("/query", "2808")
}

func TestNoSumOverflows(t *testing.T) {
	c := newClient(t, startQuota(t, QuotaOptions{Limit: 1000}))
	largest := strconv.Itoa(math.MaxInt64)
	c.is("/increase?amt="+largest, "-1")
	c.is("/query", "1000")
	c.is("/apply?amt=1000", "1 0")
	c.is("/increase?amt="+largest, largest)
	c.is("/cancel?jnlsno=1", "-1")
	c.is("/decrease?amt="+largest, "0")
	c.is("/cancel?jnlsno=1", "2 1000")
}

func TestARepeatedCallCountsOnce(t *testing.T) {
	c := newClient(t, startQuota(t, QuotaOptions{Limit: 10}))
	for range 3 {
		c.is("/apply?amt=4&id=order-1", "1 6")
	}
	c.is("/apply?amt=5&id=order-1", "-1") // another call under the same name
	c.is("/apply?amt=4&id=order-2", "2 2")
	for range 3 {
		c.is("/apply?amt=4&id=order-3", "0 2")
		c.is("/cancel?jnlsno=1&id=back", "3 6")
		c.is("/increase?amt=1&id=more", "7")
	}
	c.is("/query", "7")
}

func TestNamedQuotasBeginWithAnIncrease(t *testing.T) {
	c := newClient(t, startQuota(t, QuotaOptions{Limit: 10}))
	for _, path := range []string{"/query?name=seats", "/apply?amt=1&name=seats", "/empty?name=seats", "/cancel?jnlsno=1&name=seats"} {
		status, body := c.get(path)
		require.Equal(t, 404, status, path)
		require.Equal(t, "Not Found", body)
	}
	c.is("/increase?amt=3&name=seats", "3")
	c.is("/apply?amt=2&name=seats", "1 1")
	c.is("/query?name=seats", "1")
	c.is("/query", "10")
	c.is("/empty?name=seats", "0")
}

func TestARestartGoesOnWithWhatIsLeft(t *testing.T) {
	d := openDB(t, t.TempDir())
	export := filepath.Join(t.TempDir(), "journals")
	first, err := NewQuotaServer(QuotaOptions{DB: d, Limit: 100, Export: export})
	require.NoError(t, err)
	l := listen(t)
	first.Start(l)
	c := newClient(t, l.Addr().String())
	c.is("/apply?amt=30", "1 70")
	c.is("/apply?amt=20&id=x", "2 50")
	c.is("/cancel?jnlsno=1", "3 80")
	c.is("/apply?amt=81", "0 80")
	require.NoError(t, first.Close())
	const exported = "1 30 3\n2 20\n"
	text, err := os.ReadFile(export)
	require.NoError(t, err)
	require.Equal(t, exported, string(text), "a stop finishes the export")

	c = newClient(t, startQuota(t, QuotaOptions{DB: d, Limit: 999, Export: export}))
	c.is("/query", "80")
	c.is("/apply?amt=20&id=x", "2 50")
	c.is("/cancel?jnlsno=1", "0")
	c.is("/apply?amt=80", "4 0")
	c.is("/apply?amt=1", "0")
	waitFor(t, "the export", func() bool {
		text, err := os.ReadFile(export)
		return err == nil && string(text) == exported+"4 80\n"
	})
}

// What a process that was killed within an export has left is in nobody's way, and is gone after the next one.
func TestAnExportIsWholeWhateverWasLeft(t *testing.T) {
	dir := t.TempDir()
	export := filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(export, []byte("1 2\n"), 0o644))
	require.NoError(t, os.WriteFile(export+unfinished, []byte("half of a journal, and more than there is to come"), 0o644))
	c := newClient(t, startQuota(t, QuotaOptions{Limit: 1, Export: export}))
	text, err := os.ReadFile(export)
	require.NoError(t, err)
	require.Equal(t, "1 2\n", string(text), "a start leaves it as it was")
	c.is("/apply?amt=1", "1 0")
	waitFor(t, "the export", func() bool {
		text, err := os.ReadFile(export)
		return err == nil && string(text) == "1 1\n"
	})
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// The process may end between the call that uses a quota up and the export.
func TestAQuotaThatIsUsedUpIsExportedAfterTheStart(t *testing.T) {
	d := openDB(t, t.TempDir())
	c := newClient(t, startQuota(t, QuotaOptions{DB: d, Limit: 10}))
	c.is("/apply?amt=10", "1 0")
	c.is("/increase?amt=3&name=open", "3")
	c.is("/increase?amt=3&name=n", "3")
	c.is("/apply?amt=4&name=n", "0 3")
	export := filepath.Join(t.TempDir(), "out")
	startQuota(t, QuotaOptions{DB: d, Export: export})
	waitFor(t, "the exports", func() bool {
		text, err := os.ReadFile(export)
		_, nerr := os.Stat(export + ".n")
		return err == nil && nerr == nil && string(text) == "1 10\n"
	})
	require.NoFileExists(t, export+".open")
}

// A word that is no parameter takes nothing away from those behind it.
func TestParametersBehindAWordThatIsNone(t *testing.T) {
	c := newClient(t, startQuota(t, QuotaOptions{Limit: 10}))
	c.is("/increase?amt=5&name=n", "5")
	c.is("/apply?amt=2&x&name=n", "1 3")
	c.is("/apply?amt=2&x&id=a", "1 8")
	c.is("/apply?amt=2&x&id=a", "1 8")
	for _, path := range []string{"/query?name", "/query?x", "/empty?x&name=n", "/empty?name"} {
		status, _ := c.get(path)
		require.Equal(t, 404, status, path)
	}
	c.is("/query?name=n", "3")
}

// A quota that refuses again and again is not exported again and again, but when its file has changed or its journals have.
func TestAnExportIsMadeOnceForTheSameJournals(t *testing.T) {
	export := filepath.Join(t.TempDir(), "out")
	r := &records{db: openDB(t, t.TempDir())}
	e := &exporter{fs: vfs.OS{}, file: export, records: r, made: map[*quota]exported{}} // without its goroutine
	q := &quota{records: r, exhausted: func(*quota) {}, fresh: state{remaining: 10, open: true}}
	apply := func(amount int64) {
		_, err := q.do(nil, &call{word: "apply", number: amount, pending: new(db.Pending)})
		require.NoError(t, err)
	}
	made := func() os.FileInfo {
		t.Helper()
		info, err := os.Stat(export)
		require.NoError(t, err)
		return info
	}
	apply(3)
	require.NoError(t, e.exportChanged(q))
	first := made()
	apply(11)
	require.NoError(t, e.exportChanged(q))
	require.True(t, os.SameFile(first, made()))
	apply(4)
	require.NoError(t, e.exportChanged(q))
	second := made()
	require.False(t, os.SameFile(first, second))
	require.NoError(t, os.Truncate(export, 0))
	require.NoError(t, e.exportChanged(q))
	require.Equal(t, second.Size(), made().Size())
	require.NoError(t, os.Remove(export))
	require.NoError(t, e.exportChanged(q))
	require.Equal(t, second.Size(), made().Size())
}

func TestLongNamesHaveExportFiles(t *testing.T) {
	long := strings.Repeat("\u00e4", maxNameSize/2)
	require.Less(t, len(safeName(long)), 200)
	require.NotEqual(t, safeName(long), safeName(long+"x"))
	export := filepath.Join(t.TempDir(), "out")
	c := newClient(t, startQuota(t, QuotaOptions{Export: export}))
	c.is("/increase?amt=3&name="+long, "3")
	c.is("/apply?amt=3&name="+long, "1 0")
	waitFor(t, "the export", func() bool {
		text, err := os.ReadFile(export + "." + safeName(long))
		return err == nil && string(text) == "1 3\n"
	})
}

func TestExportFilesOfNamesStayInTheirDirectory(t *testing.T) {
	dir := t.TempDir()
	c := newClient(t, startQuota(t, QuotaOptions{Limit: 1, Export: filepath.Join(dir, "out")}))
	c.is("/increase?amt=3&name=../../etc/x", "3")
	c.is("/apply?amt=3&name=../../etc/x", "1 0")
	waitFor(t, "the export", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "out.%2E.%2F..%2Fetc%2Fx"))
		return err == nil && string(text) == "1 3\n"
	})
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// What the clients were granted and what remains is the limit, at every moment the server can be stopped.
func TestConcurrentCallsNeitherLoseNorMakeUnits(t *testing.T) {
	const workers, limit = 8, 20_000
	addr := startQuota(t, QuotaOptions{Limit: limit})
	var granted atomic.Int64
	var wait sync.WaitGroup
	for w := range workers {
		c := newClient(t, addr)
		wait.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 0))
			for {
				amount := 1 + rnd.Int64N(20)
				_, body := c.get(fmt.Sprintf("/apply?amt=%d", amount))
				journal, _, _ := strings.Cut(strings.TrimSpace(body), " ")
				if journal == "0" {
					return
				}
				granted.Add(amount)
				if rnd.IntN(4) == 0 {
					c.get("/cancel?jnlsno=" + journal)
					granted.Add(-amount)
				}
			}
		})
	}
	wait.Wait()
	_, rest := newClient(t, addr).get("/query")
	remaining, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
	require.NoError(t, err)
	require.Equal(t, int64(limit), granted.Load()+remaining)
}

// The reference implementation of the rules, without records: random calls must have equal replies.
func TestRandomCallsAgreeWithThePublishedRules(t *testing.T) {
	for seed := range uint64(20) {
		c := newClient(t, startQuota(t, QuotaOptions{Limit: 50}))
		m := &model{remaining: 50, open: true, journals: map[int64]int64{}}
		rnd := rand.New(rand.NewPCG(seed, 9))
		for range 200 {
			number := rnd.Int64N(30) - 3
			switch rnd.IntN(8) {
			case 0, 1, 2, 3:
				c.is(fmt.Sprintf("/apply?amt=%d", number), m.apply(number))
			case 4, 5:
				c.is(fmt.Sprintf("/cancel?jnlsno=%d", number), m.cancel(number))
			case 6:
				c.is(fmt.Sprintf("/increase?amt=%d", number), m.add(number, true))
			default:
				c.is(fmt.Sprintf("/decrease?amt=%d", number), m.add(-number, false))
			}
		}
	}
}

type model struct {
	remaining, last int64
	open            bool
	journals        map[int64]int64 // uncancelled applies
}

func (m *model) apply(amount int64) string {
	if amount < 0 {
		return "-1"
	}
	if !m.open && m.remaining <= 0 {
		return "0"
	}
	if amount > m.remaining {
		m.open = false
		return fmt.Sprintf("0 %d", m.remaining)
	}
	m.last++
	m.remaining -= amount
	m.journals[m.last] = amount
	m.open = m.remaining > 0
	return fmt.Sprintf("%d %d", m.last, m.remaining)
}

func (m *model) cancel(number int64) string {
	if number == 0 {
		return "-1"
	}
	amount, ok := m.journals[number]
	if !ok {
		return "0"
	}
	delete(m.journals, number)
	m.last++
	m.remaining += amount
	m.open = true
	return fmt.Sprintf("%d %d", m.last, m.remaining)
}

func (m *model) add(amount int64, increase bool) string {
	if amount < 0 == increase && amount != 0 {
		return "-1"
	}
	m.remaining = max(0, m.remaining+amount)
	if increase || m.remaining == 0 {
		m.open = increase
	}
	return strconv.FormatInt(m.remaining, 10)
}

func TestDamagedRecordsAreReported(t *testing.T) {
	d := openDB(t, t.TempDir())
	require.NoError(t, d.Set(nil, quotaKey("", "state"), []byte("what"), record.Never))
	_, err := NewQuotaServer(QuotaOptions{DB: d})
	require.ErrorContains(t, err, "quota \"\" is damaged")
}

// Errors that every call meets do not fill the log.
func TestErrorsAreLoggedNowAndThen(t *testing.T) {
	const calls = 2000
	d := openDB(t, t.TempDir())
	require.NoError(t, d.Set(nil, quotaKey("n", "state"), []byte("what"), record.Never))
	var log lines
	c := newClient(t, startQuota(t, QuotaOptions{DB: d, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))}))
	start := time.Now()
	for range calls {
		status, body := c.get("/query?name=n")
		require.Equal(t, 500, status)
		require.Contains(t, body, "is damaged")
	}
	require.Positive(t, log.Load())
	require.LessOrEqual(t, log.Load(), 1+int64(time.Since(start)/time.Second))
}

// lines counts what a logger writes.
type lines struct{ atomic.Int64 }

func (l *lines) Write(p []byte) (int, error) {
	l.Add(1)
	return len(p), nil
}

func FuzzRequest(f *testing.F) {
	for _, seed := range []string{"GET /fetch HTTP/1.1\r\n\r\n", "GET / HTTP/1.0\nConnection: Keep-Alive\nContent-Length: 3\n\nabc", "\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		size := headSize(text, 0)
		require.LessOrEqual(t, size, len(text))
		if size == 0 {
			return
		}
		for cut := range size { // a head that arrives in pieces is found at the same place
			require.Zero(t, headSize(text[:cut], 0))
		}
		r, err := parseHead(text[:size])
		require.True(t, err != nil || (r.body >= 0 && r.body <= maxBody))
		params(r.target, func(string, []byte) bool { return true })
		atoll(r.target)
	})
}
