package ulog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tailed reads everything there is, from memory where it can. It returns how many entries came from
// memory.
func tailed(t *testing.T, r *Reader) (entries []string, shared int) {
	t.Helper()
	for {
		for _, g := range r.Tail(nil) {
			before := len(entries)
			g.Each(func(e Entry) { entries = append(entries, fmt.Sprint(e.Stamp, e.Origin, string(e.Message))) })
			require.Equal(t, g.Count, len(entries)-before)
			shared += g.Count
		}
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries, shared
		}
		require.NoError(t, err)
		entries = append(entries, fmt.Sprint(e.Stamp, e.Origin, string(e.Message)))
	}
}

func TestTailIsWhatNextDelivers(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{Limit: 20_000})
	defer l.Close()
	mustCommit(t, l, "before")
	var readers []*Reader
	for range 3 {
		r, err := l.NewReader(0)
		require.NoError(t, err)
		defer r.Close()
		readers = append(readers, r)
	}
	var got [3][]string
	var shared [3]int
	for i := range 1000 {
		at, err := l.Append([]Update{from(uint64(i%3), Stamp(i), fmt.Sprint("key ", i)), set("own")})
		require.NoError(t, err)
		require.NoError(t, l.Wait(at))
		for k, r := range readers {
			if k == 0 || i%(7*k) == 0 || i == 999 {
				entries, n := tailed(t, r)
				got[k] = append(got[k], entries...)
				shared[k] += n
				delivered, known := r.Delivered()
				require.True(t, known)
				require.Equal(t, l.Updates(), delivered)
			}
		}
	}
	r, err := l.NewReader(0)
	require.NoError(t, err)
	defer r.Close()
	_, known := r.Delivered()
	require.False(t, known)
	want := make([]string, 0, 2001)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		want = append(want, fmt.Sprint(e.Stamp, e.Origin, string(e.Message)))
	}
	require.Len(t, want, 2001)
	for k := range readers {
		require.Equal(t, want, got[k])
		require.Greater(t, shared[k], 1500)
	}
	mustCommit(t, l, "a", "b")
	delivered, _ := r.Delivered()
	require.EqualValues(t, 2, l.Updates()-delivered)
}

func TestTailKeepsALimitedAmount(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	defer l.Close()
	mustCommit(t, l, "nobody reads")
	require.Empty(t, l.newest.groups)
	r, err := l.NewReader(0)
	require.NoError(t, err)
	big := set("big")
	big.Value = make([]byte, groupKept/2)
	for range 30 {
		at, err := l.Append([]Update{big})
		require.NoError(t, err)
		require.NoError(t, l.Wait(at))
		require.LessOrEqual(t, l.newest.bytes, tailBytes)
	}
	require.NotEmpty(t, l.newest.groups)
	entries, _ := tailed(t, r)
	require.Len(t, entries, 31)
	require.NoError(t, r.Close())
	require.Empty(t, l.newest.groups)
}

func TestTailWhileOthersWrite(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{Limit: 100_000})
	defer l.Close()
	const writers, each = 4, 500
	var wg sync.WaitGroup
	for range 3 {
		r, err := l.NewReader(0)
		require.NoError(t, err)
		wg.Go(func() {
			defer r.Close()
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			n, last := 0, Stamp(0)
			check := func(at Stamp) {
				if at <= last {
					t.Errorf("stamp %d after %d", at, last)
				}
				last = at
				n++
			}
			for n < writers*each && r.Wait(ctx) == nil {
				for _, g := range r.Tail(nil) {
					g.Each(func(e Entry) { check(e.Stamp) })
				}
				for {
					e, err := r.Next()
					if err != nil {
						break
					}
					check(e.Stamp)
				}
			}
			if n != writers*each {
				t.Errorf("%d of %d", n, writers*each)
			}
		})
	}
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				at, err := l.Append(sets(fmt.Sprint(w, i)))
				if err != nil || l.Wait(at) != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestWhatIsRememberedIsFoundAgain(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Limit: 500})
	require.Nil(t, remembered(l))
	mustCommit(t, l, "a")
	for i := range 3 {
		at, err := l.AppendReplicated(sets("b"), &Position{DBID: 1, State: fmt.Append(nil, "state ", i)})
		require.NoError(t, err)
		require.NoError(t, l.Wait(at))
	}
	_, err := l.Append([]Update{from(5, 6, "no state")})
	require.NoError(t, err)
	for i := range 100 {
		mustCommit(t, l, fmt.Sprint(i))
		require.Equal(t, "state 2", string(remembered(l)))
	}
	require.NoError(t, l.Close())
	l = mustOpen(t, dir, Options{Limit: 500})
	require.Equal(t, "state 2", string(remembered(l)))
	require.NoError(t, l.RemoveFiles(maxStamp))
	require.NoError(t, l.Close())
	l = mustOpen(t, dir, Options{Limit: 500})
	require.Equal(t, "state 2", string(remembered(l)))
	require.NoError(t, l.Close())
}

// A log is cut at every byte behind a rotation: what is remembered always is what belongs to the
// records that are there.
func TestWhatIsRememberedNeverLeadsTheRecords(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Limit: 200})
	for i := range 4 {
		at, err := l.AppendReplicated(sets(fmt.Sprint("key ", i)), &Position{State: fmt.Append(nil, i)})
		require.NoError(t, err)
		require.NoError(t, l.Wait(at))
	}
	newest := l.writer.end().seg
	require.Greater(t, newest, uint64(1))
	require.NoError(t, l.Close())
	for cut := headerSize + commitSize - 1; ; cut++ {
		to := t.TempDir()
		require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
		name := filepath.Join(to, segmentName(newest))
		whole, err := os.ReadFile(name)
		require.NoError(t, err)
		if cut > len(whole) {
			break
		}
		left := append(encodeHeader(header{headerSize + commitSize, 1}), whole[headerSize:cut]...)
		if cut < headerSize+commitSize {
			left = nil // it has lost everything
		}
		require.NoError(t, os.WriteFile(name, left, filePerm))
		l := mustOpen(t, to, Options{})
		r, err := l.NewReader(0)
		require.NoError(t, err)
		n := 0
		for {
			_, err := r.Next()
			if _, gap := errors.AsType[*GapError](err); gap && left == nil {
				r.SkipGap()
				continue
			}
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
			n++
		}
		require.Equal(t, fmt.Sprint(n-1), string(remembered(l)), "cut at %d of %d", cut, len(whole))
		require.NoError(t, r.Close())
		require.NoError(t, l.Close())
	}
}

func TestSkipPassesOverWhatIsNotWantedOnly(t *testing.T) {
	for _, row := range []struct {
		sid    uint16
		others bool
	}{{7, false}, {1, true}} { // both want what 7 does
		l := mustOpen(t, t.TempDir(), Options{Limit: 2000})
		mustCommit(t, l, "before")
		r, err := l.NewReader(0)
		require.NoError(t, err)
		n, _ := r.Skip(row.sid, row.others)
		require.Zero(t, n, "it has not been at the end")
		entries, _ := tailed(t, r)
		require.Len(t, entries, 1)
		written, skipped, read := 0, 0, 0
		for i := range 400 {
			u := set("k")
			if i%17 == 5 {
				u.SID = 7
				written++
			}
			at, err := l.Append([]Update{u})
			require.NoError(t, err)
			require.NoError(t, l.Wait(at))
			if i%3 > 0 {
				continue
			}
			if n, last := r.Skip(row.sid, row.others); n > 0 {
				require.Equal(t, at, last)
				skipped += int(n)
			}
			entries, _ := tailed(t, r)
			for _, e := range entries {
				if strings.Contains(e, "\x00\x07\x00\x00\xa1") {
					read++
				}
			}
		}
		require.Equal(t, written, read)
		require.Positive(t, skipped)
		delivered, known := r.Delivered()
		require.True(t, known)
		require.Equal(t, l.Updates(), delivered)
		require.NoError(t, r.Close())
		require.NoError(t, l.Close())
	}
}

// Nobody has copied a group for a reader that comes while the group is written: the reader has it
// from the file, and the next group from memory.
func TestAReaderComesWhileAGroupIsWritten(t *testing.T) {
	l, err := Open(t.TempDir(), Options{SyncInterval: time.Hour})
	require.NoError(t, err)
	defer l.Close()
	ups := []Update{{SID: 1, Op: OpSet, Key: []byte("k"), Value: []byte("v")}}
	_, err = l.Append(ups)
	require.NoError(t, err)
	l.mu.Lock()
	l.queue.phase = gathering // this goroutine leads
	l.mu.Unlock()
	g, err := l.writer.take()
	require.NoError(t, err)
	r, err := l.NewReader(0)
	require.NoError(t, err)
	defer r.Close()
	none, _ := tailed(t, r) // the reader is at the end, where it looks into memory
	require.Empty(t, none)
	require.NoError(t, l.writer.writeGroup(&g))
	l.writer.finish(g)
	entries, shared := tailed(t, r)
	require.Len(t, entries, 1)
	require.Zero(t, shared)
	s, err := l.Append(ups)
	require.NoError(t, err)
	require.NoError(t, l.Wait(s))
	entries, shared = tailed(t, r)
	require.Len(t, entries, 1)
	require.Equal(t, 1, shared)
}
