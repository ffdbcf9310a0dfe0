package ulog

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
)

// benchUpdates is one update whose record has 130 bytes.
func benchUpdates() []Update {
	return []Update{{SID: 1, Op: OpSet, Key: make([]byte, 16), Value: make([]byte, 92)}}
}

func benchLog(b *testing.B, o Options) *Log {
	l, err := Open(b.TempDir(), o)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, l.Close()) })
	return l
}

// BenchmarkAppend throws the records away again, so that it does not measure the disk.
func BenchmarkAppend(b *testing.B) {
	l := benchLog(b, Options{SyncInterval: time.Hour})
	ups := benchUpdates()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if _, err := l.Append(ups); err != nil {
			b.Fatal(err)
		}
		if n++; n%256 == 0 {
			l.mu.Lock()
			l.pending.buf, l.pending.count = l.pending.buf[:0], 0
			l.mu.Unlock()
		}
	}
}

// BenchmarkCommit is Append and Wait, as one and as many writers, with and without fsync.
func BenchmarkCommit(b *testing.B) {
	for _, sync := range []bool{false, true} {
		for _, writers := range []int{1, 8, 64, 512} {
			b.Run(fmt.Sprintf("fsync=%v/writers=%d", sync, writers), func(b *testing.B) {
				benchCommit(b, benchLog(b, Options{SyncEach: sync}), writers)
			})
		}
	}
}

func benchCommit(b *testing.B, l *Log, writers int) {
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for w := range writers {
		n := b.N / writers
		if w < b.N%writers {
			n++
		}
		wg.Go(func() {
			ups := benchUpdates()
			for range n {
				s, err := l.Append(ups)
				if err = errors.Join(err, l.Wait(s)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkPwrite is what BenchmarkCommit with one writer cannot beat.
func BenchmarkPwrite(b *testing.B) {
	f, err := vfs.OS{}.OpenFile(b.TempDir()+"/f", create, filePerm)
	require.NoError(b, err)
	defer f.Close()
	buf := make([]byte, 130+commitSize)
	off := int64(0)
	for b.Loop() {
		if _, err := f.WriteAt(buf, off); err != nil {
			b.Fatal(err)
		}
		off += int64(len(buf))
	}
}

func BenchmarkReader(b *testing.B) {
	dir := b.TempDir()
	l, err := Open(dir, Options{})
	require.NoError(b, err)
	ups := benchUpdates()
	for i := range 200_000 {
		s, err := l.Append(ups)
		require.NoError(b, err)
		if i%50 == 0 {
			require.NoError(b, l.Wait(s))
		}
	}
	require.NoError(b, l.Close())
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		r, err := OpenReader(vfs.OS{}, dir, 0, ReaderOptions{})
		require.NoError(b, err)
		for err = nil; err == nil && n < b.N; n++ {
			_, err = r.Next()
		}
		if err != nil {
			require.ErrorIs(b, err, io.EOF)
		}
		require.NoError(b, r.Close())
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkOpen is the check of a segment of 26 MB.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	l, err := Open(dir, Options{})
	require.NoError(b, err)
	ups := benchUpdates()
	for range 200_000 {
		_, err := l.Append(ups)
		require.NoError(b, err)
	}
	require.NoError(b, l.Close())
	for b.Loop() {
		l, err := Open(dir, Options{})
		require.NoError(b, err)
		require.NoError(b, l.Close())
	}
}

// BenchmarkCommitShared is 64 writers of 100 records each while there is a reader, for which every
// group is kept in memory.
func BenchmarkCommitShared(b *testing.B) {
	l := benchLog(b, Options{})
	r, err := l.NewReader(0)
	require.NoError(b, err)
	defer r.Close()
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			ups := slices.Repeat(benchUpdates(), 100)
			for range b.N / 64 {
				s, err := l.Append(ups)
				if err = errors.Join(err, l.Wait(s)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
