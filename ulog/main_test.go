package ulog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/internal/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time source set by hand.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.UnixMilli(1_800_000_000_000)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// logText is a logger whose lines a test can look at.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logText) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func mustOpen(t testing.TB, dir string, o Options) *Log {
	t.Helper()
	l, err := Open(dir, o)
	require.NoError(t, err)
	return l
}

// set is an update that sets key, to a value with some content.
func set(key string) Update {
	return Update{SID: 1, Op: OpSet, Key: []byte(key), Value: []byte("\xff\xff\xff\xff\xffvalue of " + key)}
}

func sets(keys ...string) (ups []Update) {
	for _, k := range keys {
		ups = append(ups, set(k))
	}
	return ups
}

func mustAppend(t testing.TB, l *Log, keys ...string) Stamp {
	t.Helper()
	s, err := l.Append(sets(keys...))
	require.NoError(t, err)
	return s
}

// mustCommit appends each key alone and has it written.
func mustCommit(t testing.TB, l *Log, keys ...string) (last Stamp) {
	t.Helper()
	for _, k := range keys {
		last = mustAppend(t, l, k)
		require.NoError(t, l.Wait(last))
	}
	return last
}

// fill makes a log with one group per key and closes it.
func fill(t testing.TB, dir string, o Options, keys ...string) {
	t.Helper()
	l := mustOpen(t, dir, o)
	mustCommit(t, l, keys...)
	require.NoError(t, l.Close())
}

// got is an entry that outlives the call of Next.
type got struct {
	stamp Stamp
	msg   string
}

// drain reads until io.EOF, passing over gaps and damage, and returns what was read, the damage,
// and the gaps with the reports.
func drain(t testing.TB, dir string, after Stamp) (all []got, damage []*DamageError, reports []string) {
	t.Helper()
	r, err := OpenReader(vfs.OS{}, dir, after, ReaderOptions{Report: func(err error) { reports = append(reports, err.Error()) }})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for {
		e, err := r.Next()
		var d *DamageError
		var gap *GapError
		switch {
		case errors.Is(err, io.EOF):
			return all, damage, reports
		case errors.As(err, &gap):
			reports = append(reports, gap.Error())
			r.SkipGap()
		case errors.As(err, &d):
			damage = append(damage, d)
			r.SkipDamage()
		default:
			require.NoError(t, err)
			all = append(all, got{e.Stamp, string(e.Message)})
		}
	}
}

// keysOf returns the keys of entries.
func keysOf(t testing.TB, all []got) (keys []string) {
	t.Helper()
	for _, g := range all {
		u, err := ParseMessage([]byte(g.msg))
		require.NoError(t, err)
		keys = append(keys, string(u.Key))
	}
	return keys
}

// readKeys returns the keys of a log that has to be in order.
func readKeys(t testing.TB, dir string) []string {
	t.Helper()
	all, damage, reports := drain(t, dir, 0)
	require.Empty(t, damage)
	require.Empty(t, reports)
	return keysOf(t, all)
}

func copyDir(t testing.TB, src string) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "ulog")
	require.NoError(t, os.CopyFS(dst, os.DirFS(src)))
	return dst
}

// keys returns n different keys.
func keys(prefix string, n int) (ks []string) {
	for i := range n {
		ks = append(ks, fmt.Sprintf("%s%04d", prefix, i))
	}
	return ks
}

// within waits until a condition holds.
func within(t testing.TB, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, 10*time.Second, time.Millisecond, what)
}
