package ulog

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/recordings"
	"gotycoon/internal/vfs"
)

// goldenSegments returns segments of the original.
func goldenSegments(f *testing.F) (segments [][]byte) {
	f.Helper()
	golden := recordings.Dir(f, "ulog")
	names, err := filepath.Glob(filepath.Join(golden, "*/ulog/*.ulog"))
	require.NoError(f, err)
	more, err := filepath.Glob(filepath.Join(golden, "truncated/*/ulog/0000000003.ulog"))
	require.NoError(f, err)
	for _, name := range append(append(names, more...), filepath.Join(golden, "odd-messages/0000000001.ulog")) {
		if b, err := os.ReadFile(name); err == nil && len(b) < 4096 {
			segments = append(segments, b)
		}
	}
	return segments
}

// FuzzParseMessage decodes anything; what it accepts is encoded to an equivalent message.
func FuzzParseMessage(f *testing.F) {
	for _, seg := range goldenSegments(f) {
		s := scanner{off: headerSize}
		s.win.buf = seg
		for s.off <= int64(len(seg)) {
			r, err := s.record(s.off, s.off, int64(len(seg)))
			if err != nil {
				break
			}
			s.off = r.end
			f.Add(r.message())
		}
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		u, err := ParseMessage(msg)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		again := AppendMessage(nil, &u)
		require.LessOrEqual(t, len(again), len(msg))
		back, err := ParseMessage(again)
		require.NoError(t, err)
		require.Equal(t, again, AppendMessage(nil, &back))
		require.Equal(t, string(u.Key), string(back.Key))
		require.Equal(t, string(u.Value), string(back.Value))
	})
}

// FuzzReader reads any bytes as a segment: it ends, and Open, unless it refuses them, keeps just
// what was read.
func FuzzReader(f *testing.F) {
	for _, seg := range goldenSegments(f) {
		f.Add(seg)
	}
	dir := f.TempDir()
	fill(f, dir, Options{Now: newClock().now}, "a", "b", "c")
	ours, err := os.ReadFile(filepath.Join(dir, segmentName(1)))
	require.NoError(f, err)
	f.Add(ours)
	f.Add(append(encodeHeader(header{45, 0}), ours[headerSize:]...))
	f.Fuzz(func(t *testing.T, seg []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, segmentName(1)), seg, filePerm))
		before, damaged := readToEnd(t, dir)
		l, err := Open(dir, Options{})
		if err != nil {
			var damage *DamageError
			require.ErrorAs(t, err, &damage)
			return
		}
		require.NoError(t, l.Close())
		after, damagedAfter := readToEnd(t, dir)
		require.False(t, damagedAfter)
		if !damaged {
			require.Equal(t, before, after)
		}
	})
}

func readToEnd(t *testing.T, dir string) (all []got, damaged bool) {
	r, err := OpenReader(vfs.OS{}, dir, 0, ReaderOptions{})
	require.NoError(t, err)
	defer r.Close()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, damaged
		}
		if _, gap := errors.AsType[*GapError](err); gap { // Open leaves the gap where it is
			r.SkipGap()
			continue
		}
		if err != nil {
			damaged = true
			r.SkipDamage()
			continue
		}
		all = append(all, got{e.Stamp, string(e.Message)})
	}
}
