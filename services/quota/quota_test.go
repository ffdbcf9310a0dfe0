package quota

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
	"gotycoon/services"
	"gotycoon/services/internal/servicetest"
	"gotycoon/services/internal/webport"
)

func TestAnyJournalIsCancelledOnceAndOnlyOnce(t *testing.T) {
	c := servicetest.NewClient(t, start(t, Options{Limit: 5000}))
	for i := 1; i <= 1100; i++ {
		c.Is("/apply?amt=2", fmt.Sprintf("%d %d", i, 5000-2*i))
	}
	for i, journal := range []int{1, 998, 1100, 50} {
		c.Is(fmt.Sprintf("/cancel?jnlsno=%d", journal), fmt.Sprintf("%d %d", 1101+i, 2800+2*(i+1)))
		c.Is(fmt.Sprintf("/cancel?jnlsno=%d", journal), "0")
	}
	c.Is("/cancel?jnlsno=1101", "0")
	c.Is("/cancel?jnlsno=1105", "0")
	c.Is("/query", "2808")
}

func TestNoSumOverflows(t *testing.T) {
	c := servicetest.NewClient(t, start(t, Options{Limit: 1000}))
	largest := strconv.Itoa(math.MaxInt64)
	c.Is("/increase?amt="+largest, "-1")
	c.Is("/query", "1000")
	c.Is("/apply?amt=1000", "1 0")
	c.Is("/increase?amt="+largest, largest)
	c.Is("/cancel?jnlsno=1", "-1")
	c.Is("/decrease?amt="+largest, "0")
	c.Is("/cancel?jnlsno=1", "2 1000")
}

func TestARepeatedCallCountsOnce(t *testing.T) {
	c := servicetest.NewClient(t, start(t, Options{Limit: 10}))
	for range 3 {
		c.Is("/apply?amt=4&id=order-1", "1 6")
	}
	c.Is("/apply?amt=5&id=order-1", "-1") // another call under the same name
	c.Is("/apply?amt=4&id=order-2", "2 2")
	for range 3 {
		c.Is("/apply?amt=4&id=order-3", "0 2")
		c.Is("/cancel?jnlsno=1&id=back", "3 6")
		c.Is("/increase?amt=1&id=more", "7")
	}
	c.Is("/query", "7")
}

func TestNamedQuotasBeginWithAnIncrease(t *testing.T) {
	c := servicetest.NewClient(t, start(t, Options{Limit: 10}))
	for _, path := range []string{"/query?name=seats", "/apply?amt=1&name=seats", "/empty?name=seats", "/cancel?jnlsno=1&name=seats"} {
		status, body := c.Get(path)
		require.Equal(t, 404, status, path)
		require.Equal(t, "Not Found", body)
	}
	c.Is("/increase?amt=3&name=seats", "3")
	c.Is("/apply?amt=2&name=seats", "1 1")
	c.Is("/query?name=seats", "1")
	c.Is("/query", "10")
	c.Is("/empty?name=seats", "0")
}

func TestARestartGoesOnWithWhatIsLeft(t *testing.T) {
	d := servicetest.OpenDB(t, t.TempDir())
	export := filepath.Join(t.TempDir(), "journals")
	first, err := New(Options{DB: d, Limit: 100, Export: export})
	require.NoError(t, err)
	l := servicetest.Listen(t)
	first.Start(l)
	c := servicetest.NewClient(t, l.Addr().String())
	c.Is("/apply?amt=30", "1 70")
	c.Is("/apply?amt=20&id=x", "2 50")
	c.Is("/cancel?jnlsno=1", "3 80")
	c.Is("/apply?amt=81", "0 80")
	require.NoError(t, first.Close())
	const exported = "1 30 3\n2 20\n"
	text, err := os.ReadFile(export)
	require.NoError(t, err)
	require.Equal(t, exported, string(text), "a stop finishes the export")

	c = servicetest.NewClient(t, start(t, Options{DB: d, Limit: 999, Export: export}))
	c.Is("/query", "80")
	c.Is("/apply?amt=20&id=x", "2 50")
	c.Is("/cancel?jnlsno=1", "0")
	c.Is("/apply?amt=80", "4 0")
	c.Is("/apply?amt=1", "0")
	servicetest.WaitFor(t, "the export", func() bool {
		text, err := os.ReadFile(export)
		return err == nil && string(text) == exported+"4 80\n"
	})
}

// What a process that was killed within an export has left is in nobody's way, and is gone after
// the next one.
func TestAnExportIsWholeWhateverWasLeft(t *testing.T) {
	dir := t.TempDir()
	export := filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(export, []byte("1 2\n"), 0o644))
	require.NoError(t, os.WriteFile(export+unfinished, []byte("half of a journal, and more than there is to come"), 0o644))
	c := servicetest.NewClient(t, start(t, Options{Limit: 1, Export: export}))
	text, err := os.ReadFile(export)
	require.NoError(t, err)
	require.Equal(t, "1 2\n", string(text), "a start leaves it as it was")
	c.Is("/apply?amt=1", "1 0")
	servicetest.WaitFor(t, "the export", func() bool {
		text, err := os.ReadFile(export)
		return err == nil && string(text) == "1 1\n"
	})
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// The process may end between the call that uses a quota up and the export.
func TestAQuotaThatIsUsedUpIsExportedAfterTheStart(t *testing.T) {
	d := servicetest.OpenDB(t, t.TempDir())
	c := servicetest.NewClient(t, start(t, Options{DB: d, Limit: 10}))
	c.Is("/apply?amt=10", "1 0")
	c.Is("/increase?amt=3&name=open", "3")
	c.Is("/increase?amt=3&name=n", "3")
	c.Is("/apply?amt=4&name=n", "0 3")
	export := filepath.Join(t.TempDir(), "out")
	start(t, Options{DB: d, Export: export})
	servicetest.WaitFor(t, "the exports", func() bool {
		text, err := os.ReadFile(export)
		_, nerr := os.Stat(export + ".n")
		return err == nil && nerr == nil && string(text) == "1 10\n"
	})
	require.NoFileExists(t, export+".open")
}

// A word that is no parameter takes nothing away from those behind it.
func TestParametersBehindAWordThatIsNone(t *testing.T) {
	c := servicetest.NewClient(t, start(t, Options{Limit: 10}))
	c.Is("/increase?amt=5&name=n", "5")
	c.Is("/apply?amt=2&x&name=n", "1 3")
	c.Is("/apply?amt=2&x&id=a", "1 8")
	c.Is("/apply?amt=2&x&id=a", "1 8")
	for _, path := range []string{"/query?name", "/query?x", "/empty?x&name=n", "/empty?name"} {
		status, _ := c.Get(path)
		require.Equal(t, 404, status, path)
	}
	c.Is("/query?name=n", "3")
}

// A quota that refuses again and again is not exported again and again, but when its file has
// changed or its journals have.
func TestAnExportIsMadeOnceForTheSameJournals(t *testing.T) {
	export := filepath.Join(t.TempDir(), "out")
	r := &records{Records: webport.Records{DB: servicetest.OpenDB(t, t.TempDir())}}
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
	long := strings.Repeat("\u00e4", webport.MaxNameSize/2)
	require.Less(t, len(safeName(long)), 200)
	require.NotEqual(t, safeName(long), safeName(long+"x"))
	export := filepath.Join(t.TempDir(), "out")
	c := servicetest.NewClient(t, start(t, Options{Export: export}))
	c.Is("/increase?amt=3&name="+long, "3")
	c.Is("/apply?amt=3&name="+long, "1 0")
	servicetest.WaitFor(t, "the export", func() bool {
		text, err := os.ReadFile(export + "." + safeName(long))
		return err == nil && string(text) == "1 3\n"
	})
}

func TestExportFilesOfNamesStayInTheirDirectory(t *testing.T) {
	dir := t.TempDir()
	c := servicetest.NewClient(t, start(t, Options{Limit: 1, Export: filepath.Join(dir, "out")}))
	c.Is("/increase?amt=3&name=../../etc/x", "3")
	c.Is("/apply?amt=3&name=../../etc/x", "1 0")
	servicetest.WaitFor(t, "the export", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "out.%2E.%2F..%2Fetc%2Fx"))
		return err == nil && string(text) == "1 3\n"
	})
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// What the clients were granted and what remains is the limit, at every moment the server can be
// stopped.
func TestConcurrentCallsNeitherLoseNorMakeUnits(t *testing.T) {
	const workers, limit = 8, 20_000
	addr := start(t, Options{Limit: limit})
	var granted atomic.Int64
	var wait sync.WaitGroup
	for w := range workers {
		c := servicetest.NewClient(t, addr)
		wait.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 0))
			for {
				amount := 1 + rnd.Int64N(20)
				_, body := c.Get(fmt.Sprintf("/apply?amt=%d", amount))
				journal, _, _ := strings.Cut(strings.TrimSpace(body), " ")
				if journal == "0" {
					return
				}
				granted.Add(amount)
				if rnd.IntN(4) == 0 {
					c.Get("/cancel?jnlsno=" + journal)
					granted.Add(-amount)
				}
			}
		})
	}
	wait.Wait()
	_, rest := servicetest.NewClient(t, addr).Get("/query")
	remaining, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
	require.NoError(t, err)
	require.Equal(t, int64(limit), granted.Load()+remaining)
}

// The reference implementation of the rules, without records: random calls must have equal replies.
func TestRandomCallsAgreeWithThePublishedRules(t *testing.T) {
	for seed := range uint64(20) {
		c := servicetest.NewClient(t, start(t, Options{Limit: 50}))
		m := &model{remaining: 50, open: true, journals: map[int64]int64{}}
		rnd := rand.New(rand.NewPCG(seed, 9))
		for range 200 {
			number := rnd.Int64N(30) - 3
			switch rnd.IntN(8) {
			case 0, 1, 2, 3:
				c.Is(fmt.Sprintf("/apply?amt=%d", number), m.apply(number))
			case 4, 5:
				c.Is(fmt.Sprintf("/cancel?jnlsno=%d", number), m.cancel(number))
			case 6:
				c.Is(fmt.Sprintf("/increase?amt=%d", number), m.add(number, true))
			default:
				c.Is(fmt.Sprintf("/decrease?amt=%d", number), m.add(-number, false))
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
	d := servicetest.OpenDB(t, t.TempDir())
	require.NoError(t, d.Set(nil, quotaKey("", "state"), []byte("what"), record.Never))
	_, err := New(Options{DB: d})
	require.ErrorContains(t, err, "quota \"\" is damaged")
}

// Errors that every call meets do not fill the log.
func TestErrorsAreLoggedNowAndThen(t *testing.T) {
	const calls = 2000
	d := servicetest.OpenDB(t, t.TempDir())
	require.NoError(t, d.Set(nil, quotaKey("n", "state"), []byte("what"), record.Never))
	var log lines
	c := servicetest.NewClient(t, start(t, Options{DB: d, Options: services.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))}}))
	start := time.Now()
	for range calls {
		status, body := c.Get("/query?name=n")
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

// The calls of all connections use the same memory in turns.
func TestACallLeavesNothingToTheNextOne(t *testing.T) {
	d := servicetest.OpenDB(t, t.TempDir())
	c := servicetest.NewClient(t, start(t, Options{DB: d, Limit: 1000}))
	stateIs := func(pattern string) {
		t.Helper()
		value, _, err := d.Get(nil, nil, quotaKey("", "state"))
		require.NoError(t, err)
		require.Regexp(t, "^"+pattern+"$", string(value))
	}
	c.Is("/apply?amt=10&id=a-rather-long-id", "1 990")
	stateIs(`990 1 1\napply 10 [1-9][0-9]{9}\n1 990\na-rather-long-id`)
	c.Is("/apply?amt=5", "2 985")
	stateIs(`985 2 1`)
	c.Is("/increase?amt=15", "1000")
	stateIs(`1000 2 1`)
	c.Is("/cancel?jnlsno=2&id=b", "3 1005")
	stateIs(`1005 3 1\ncancel 2 [1-9][0-9]{9}\n3 1005\nb`)
	c.Is("/apply?amt=-1&id=c", "-1")
	stateIs(`1005 3 1\ncancel 2 [1-9][0-9]{9}\n3 1005\nb`)
	for key, want := range map[string]string{
		string(journalKey("", 1)):             "10",
		string(journalKey("", 2)):             "5 3",
		string(journalKey("", 3)):             "- 2",
		"quota\x00\x00id\x00a-rather-long-id": "apply 10\n1 990",
		"quota\x00\x00id\x00b":                "cancel 2\n3 1005",
		"quota\x00\x00id\x00c":                "apply -1\n-1",
	} {
		value, _, err := d.Get(nil, nil, []byte(key))
		require.NoError(t, err)
		require.Equal(t, want, string(value), "%q", key)
	}
	n, err := d.Count(nil)
	require.NoError(t, err)
	require.EqualValues(t, 7, n)
}
