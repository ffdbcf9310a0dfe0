package ulog

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

// nextOrWait returns the next entry, waiting for it.
func nextOrWait(ctx context.Context, r *Reader) (Entry, error) {
	for {
		e, err := r.Next()
		if !errors.Is(err, io.EOF) {
			return e, err
		}
		if err := r.Wait(ctx); err != nil {
			return Entry{}, err
		}
	}
}

func TestReaderAfter(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Limit: 150, Now: c.now})
	var stamps []Stamp
	for _, k := range keys("k", 20) {
		c.add(700 * time.Millisecond)
		stamps = append(stamps, mustCommit(t, l, k))
	}
	for i, s := range stamps {
		r, err := l.NewReader(s)
		require.NoError(t, err)
		require.NoError(t, r.Lost())
		e, err := r.Next()
		if i == len(stamps)-1 {
			require.Equal(t, io.EOF, err)
		} else {
			require.NoError(t, err)
			require.Equal(t, stamps[i+1], e.Stamp)
		}
		require.NoError(t, r.Close())
		require.ErrorIs(t, r.Close(), errClosed)
		_, err = r.Next()
		require.ErrorIs(t, err, errClosed)
	}
	require.NoError(t, l.Close())
}

// TestReaderSeesWhatIsSafe does not get records before they are as safe as the mode promises.
func TestReaderSeesWhatIsSafe(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	l := mustOpen(t, t.TempDir(), Options{FS: fs, SyncEach: true, SyncInterval: time.Hour, Limit: 100})
	r, err := l.NewReader(0)
	require.NoError(t, err)
	_, err = r.Next()
	require.Equal(t, io.EOF, err)
	s := mustAppend(t, l, "a")
	_, err = r.Next()
	require.Equal(t, io.EOF, err, "appended is not enough")

	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	fs.OnSync(func() { once.Do(func() { close(entered); <-release }) })
	done := make(chan error)
	go func() { done <- l.Wait(s) }()
	<-entered
	_, err = r.Next()
	require.Equal(t, io.EOF, err, "written is not enough")
	fresh, err := l.NewReader(0)
	require.NoError(t, err)
	_, err = fresh.Next()
	require.Equal(t, io.EOF, err)
	require.NoError(t, fresh.Close())
	close(release)
	require.NoError(t, <-done)
	e, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, s, e.Stamp)

	for i := range 5 { // rotation syncs, too
		s := mustAppend(t, l, keys("k", 5)[i])
		_, err = r.Next()
		require.Equal(t, io.EOF, err)
		require.NoError(t, l.Wait(s))
		e, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, s, e.Stamp)
	}
	require.NoError(t, r.Close())
	require.NoError(t, l.Close())
}

func TestReaderWait(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	r, err := l.NewReader(0)
	require.NoError(t, err)
	_, err = r.Next()
	require.Equal(t, io.EOF, err)

	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error)
	go func() { waits <- r.Wait(ctx) }()
	cancel()
	require.ErrorIs(t, <-waits, context.Canceled)

	go func() { waits <- r.Wait(t.Context()) }()
	mustCommit(t, l, "a")
	require.NoError(t, <-waits)
	require.NoError(t, r.Wait(t.Context()), "as long as there is something to read")
	_, err = r.Next()
	require.NoError(t, err)
	_, err = r.Next()
	require.Equal(t, io.EOF, err)

	go func() { waits <- r.Wait(t.Context()) }()
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-waits, errClosed)
	require.NoError(t, r.Close())
}

// TestManyReaders wakes a thousand readers per group.
func TestManyReaders(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			r, err := l.NewReader(0)
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			for range 3 {
				if _, err := nextOrWait(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	mustCommit(t, l, "a", "b", "c")
	wg.Wait()
	require.NoError(t, l.Close())
}

// TestReaderOfAnotherProcess follows a log it knows only by its files.
func TestReaderOfAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	r, err := OpenReader(vfs.OS{}, dir, 0, ReaderOptions{})
	require.NoError(t, err)
	_, err = r.Next()
	require.Equal(t, io.EOF, err, "no segment yet")
	l := mustOpen(t, dir, Options{Limit: 150})
	for _, k := range keys("k", 10) {
		s := mustCommit(t, l, k)
		e, err := nextOrWait(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, s, e.Stamp)
		_, err = r.Next()
		require.Equal(t, io.EOF, err)
	}
	require.NoError(t, l.Close())
	require.NoError(t, r.Close())
}

// TestReaderOfGrowingFile gives a reader a segment byte by byte: it delivers whole groups only, and
// nothing is an error.
func TestReaderOfGrowingFile(t *testing.T) {
	s := newSample(t)
	s.lag(0)
	dir := t.TempDir()
	name := filepath.Join(dir, segmentName(1))
	require.NoError(t, os.WriteFile(name, nil, filePerm))
	r, err := OpenReader(vfs.OS{}, dir, 0, ReaderOptions{})
	require.NoError(t, err)
	n := 0
	for size := range int64(len(s.b)) + 1 {
		if size > 0 && size < headerSize {
			continue // nobody writes half a header
		}
		require.NoError(t, os.WriteFile(name, s.b[:size], filePerm))
		for {
			_, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, "at size %d", size)
			n++
		}
		want := 0
		for i, records := range []int{0, 1, 3, 1} {
			if size >= s.ends[i] {
				want += records
			}
		}
		require.Equal(t, want, n, "at size %d", size)
	}
	require.NoError(t, r.Close())
}

// TestReaderGap checks whether older segments that were removed may have held what was asked for.
func TestReaderGap(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Limit: 1, Now: c.now})
	var stamps []Stamp
	for _, k := range keys("k", 4) { // in segments 2 to 5
		c.add(time.Minute)
		stamps = append(stamps, mustCommit(t, l, k))
	}
	gap := func(after Stamp) bool {
		r, err := l.NewReader(after)
		require.NoError(t, err)
		defer r.Close()
		lost := r.Lost()
		if lost != nil {
			_, err = r.Next()
			require.Equal(t, lost, err)
		}
		return lost != nil
	}
	require.False(t, gap(0))
	require.NoError(t, l.RemoveFiles(stamps[1]))
	require.True(t, gap(0))
	require.True(t, gap(stamps[0]))
	require.False(t, gap(stamps[1]), "everything newer is there")
	require.False(t, gap(stamps[3]))
	require.NoError(t, l.Close())
}

func TestReaderReportsWhatIsMissing(t *testing.T) {
	tests := []struct {
		name   string
		lose   func(t *testing.T, dir string)
		report string
		keys   []string
	}{
		{"a segment", func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, segmentName(3))))
		}, "segments 3 to 3 are missing", []string{"k0000", "k0002"}},
		{"the content of one", func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, segmentName(3)), 0))
		}, "is empty", []string{"k0000", "k0002"}},
		{"the end of one", func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, segmentName(3)), 60))
		}, "bytes are missing", []string{"k0000", "k0002"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, Options{Limit: 1}, keys("k", 3)...)
			tt.lose(t, dir)
			all, damage, reports := drain(t, dir, 0)
			require.Empty(t, damage)
			require.NotEmpty(t, reports)
			require.Contains(t, reports[0], tt.report)
			require.Equal(t, tt.keys, keysOf(t, all))

			l := mustOpen(t, dir, Options{})
			r, err := l.NewReader(0)
			require.NoError(t, err)
			for err == nil {
				_, err = r.Next()
			}
			require.ErrorContains(t, err, tt.report)
			_, again := r.Next()
			require.Equal(t, err, again)
			r.SkipGap()
			for err = nil; err == nil; {
				_, err = r.Next()
			}
			require.Equal(t, io.EOF, err)
			require.NoError(t, r.Close())
			require.NoError(t, l.Close())
		})
	}
}

// TestSkipDamage goes on behind the damage: where the header of the segment says that it was whole,
// and with later segments.
func TestSkipDamage(t *testing.T) {
	s := newSample(t)
	s.lag(2)
	s.flip(s.ends[0] + 30) // in "one"
	dir := s.write(t)
	all, damage, _ := drain(t, dir, 0)
	require.Len(t, damage, 1)
	require.Equal(t, s.ends[0], damage[0].Offset)
	require.Equal(t, []string{"three"}, keysOf(t, all), "what follows the size in the header")

	s.b[0] = 'x'
	dir = s.write(t)
	good := newSample(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, segmentName(2)), good.b, filePerm))
	all, damage, _ = drain(t, dir, 0)
	require.Len(t, damage, 1)
	require.Zero(t, damage[0].Offset)
	require.Len(t, all, 5)
}

func TestReaderMissingDirectory(t *testing.T) {
	_, err := OpenReader(vfs.OS{}, filepath.Join(t.TempDir(), "none"), 0, ReaderOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestReaderAllocates nothing per record.
func TestReaderAllocates(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, Options{}, keys("k", 200)...)
	r, err := OpenReader(vfs.OS{}, dir, 0, ReaderOptions{})
	require.NoError(t, err)
	defer r.Close()
	require.Zero(t, testing.AllocsPerRun(150, func() {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}))
}
