package ulog

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

// segmentBytes returns a segment as it is on the disk.
func segmentBytes(t *testing.T, dir string, n uint64) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, segmentName(n)))
	require.NoError(t, err)
	return b
}

// kill ends a log as a process that dies does: nothing more is written.
func kill(t *testing.T, l *Log) {
	t.Helper()
	_ = l.fail(errKilled)
	require.ErrorIs(t, l.Close(), errKilled)
}

// Groups are written into room that is on the disk already: most of them do not lengthen the file.
// Readers of the files see the records and no zeros, whether the log is open or not.
func TestRoom(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{SyncEach: true})
	sizes := map[int64]bool{}
	for _, k := range keys("k", 500) {
		mustCommit(t, l, k)
		b := segmentBytes(t, dir, 1)
		sizes[int64(len(b))] = true
		require.GreaterOrEqual(t, int64(len(b)), l.written.off)
		require.Empty(t, bytes.Trim(b[l.written.off:], "\x00"))
	}
	require.Less(t, len(sizes), 12, "of 500 groups")
	require.Equal(t, keys("k", 500), readKeys(t, dir))

	kill(t, l)
	require.NotEqual(t, l.written.off, int64(len(segmentBytes(t, dir, 1))))
	require.Equal(t, keys("k", 500), readKeys(t, dir))
	l = mustOpen(t, dir, Options{SyncEach: true, NoRepair: true})
	mustCommit(t, l, "more")
	end := l.written.off
	require.NoError(t, l.Close())
	require.Len(t, segmentBytes(t, dir, 1), int(end), "a log that was closed has no zeros")
	require.Equal(t, append(keys("k", 500), "more"), readKeys(t, dir))
}

// A segment that is full ends with its last record, and is not made longer than the limit by room.
func TestRoomEndsWithItsSegment(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{SyncEach: true, Limit: 3000})
	for l.written.seg < 4 {
		mustCommit(t, l, "key")
		b := segmentBytes(t, dir, l.written.seg)
		require.LessOrEqual(t, int64(len(b)), max(3000, l.written.off))
	}
	for n := uint64(1); n < 4; n++ {
		b := segmentBytes(t, dir, n)
		require.Equal(t, byte(endMark), b[len(b)-1])
	}
	require.NoError(t, l.Close())
}

// Without an fsync for each group there is no room.
func TestNoRoom(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	mustCommit(t, l, "key")
	require.Len(t, segmentBytes(t, dir, 1), int(l.written.off))
	require.NoError(t, l.Close())
}

// A disk that has space for the updates but not for room takes the updates.
func TestNoSpaceForRoom(t *testing.T) {
	dir := t.TempDir()
	fs := faultfs.New(vfs.OS{})
	l := mustOpen(t, dir, Options{FS: fs, SyncEach: true, SyncInterval: time.Hour})
	fs.Space(leastRoom)
	for _, k := range keys("k", 20) {
		mustCommit(t, l, k)
		require.Len(t, segmentBytes(t, dir, 1), int(l.written.off), "zeros give their space back")
	}
	require.NoError(t, l.Close())
	require.Equal(t, keys("k", 20), readKeys(t, dir))
}

// Any other failure is one of the disk, and ends the log.
func TestRoomFails(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	l := mustOpen(t, t.TempDir(), Options{FS: fs, SyncEach: true, SyncInterval: time.Hour})
	fs.FailWrite(2, syscall.EIO) // the first is the group
	require.ErrorIs(t, l.Wait(mustAppend(t, l, "key")), syscall.EIO)
	require.ErrorIs(t, l.Close(), syscall.EIO)
}

// The header promises bytes of records: zeros there are damage, not room.
func TestZerosBelowThePromise(t *testing.T) {
	for _, zeros := range []int{1, 100, commitSize + 5000} {
		s := newSample(t)
		s.b = append(s.b, make([]byte, 8000)...)
		clear(s.b[s.ends[3]-int64(min(zeros, commitSize)):])
		dir := s.write(t)
		_, err := Open(dir, Options{})
		var damage *DamageError
		require.ErrorAs(t, err, &damage)
	}
}

// Zeros are room only for a log that had -oas, and only as many as room may be. Other zeros may be
// updates that the disk has lost.
func TestZerosThatAreNoRoom(t *testing.T) {
	for name, c := range map[string]struct {
		each  bool
		zeros int
		torn  bool
	}{
		"room":                   {true, mostRoom, false},
		"more than room":         {true, mostRoom + 1, true},
		"without -oas":           {false, 100, true},
		"behind half of a group": {true, -100, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSample(t)
			want := strings.Fields(sampleKeys)
			if c.zeros < 0 {
				s.lag(1)
				s.b, want = s.b[:len(s.b)-10], want[:len(want)-1]
			}
			s.b = append(s.b, make([]byte, max(c.zeros, -c.zeros))...)
			dir := s.write(t)
			l, err := Open(dir, Options{SyncEach: c.each, NoRepair: true})
			if c.torn {
				require.ErrorIs(t, err, errTorn)
				l = mustOpen(t, dir, Options{SyncEach: c.each})
			} else {
				require.NoError(t, err)
			}
			require.NoError(t, l.Close())
			names, err := filepath.Glob(filepath.Join(dir, "*.torn-*"))
			require.NoError(t, err)
			require.Equal(t, c.torn, len(names) == 1, "%q", names)
			require.Equal(t, want, readKeys(t, dir))
		})
	}
}

// copyWhile copies the files of a log as a slow program does: in pieces, with updates between two of
// them, until there is another segment.
func copyWhile(t *testing.T, dir string, write func() (segment uint64)) (to string) {
	t.Helper()
	const piece = 128 << 10
	to = t.TempDir()
	for n := uint64(1); ; n++ {
		in, err := os.Open(filepath.Join(dir, segmentName(n)))
		if os.IsNotExist(err) {
			return to
		}
		require.NoError(t, err)
		out, err := os.Create(filepath.Join(to, segmentName(n)))
		require.NoError(t, err)
		_, err = io.CopyN(out, in, piece)
		for n == 1 && write() < 4 {
		}
		if err == nil {
			_, err = io.Copy(out, in)
		}
		require.True(t, err == nil || err == io.EOF, "%v", err)
		require.NoError(t, out.Close())
		require.NoError(t, in.Close())
	}
}

// A copy of files that are being written is whole if it was made under a hold. Without one it may
// have zeros where records were written later: then whoever reads it meets a gap there.
func TestCopiesOfFilesWithRoom(t *testing.T) {
	for _, held := range []bool{true, false} {
		t.Run(fmt.Sprintf("held=%v", held), func(t *testing.T) {
			dir := t.TempDir()
			l := mustOpen(t, dir, Options{SyncEach: true, Limit: 600 << 10})
			all := 0
			write := func() uint64 {
				all++
				u := set(fmt.Sprintf("k%04d", all))
				u.Value = make([]byte, 2000)
				s, err := l.Append([]Update{u})
				require.NoError(t, err)
				require.NoError(t, l.Wait(s))
				return l.written.seg
			}
			for range 20 {
				write()
			}
			if held {
				for range 3 { // renewed
					_, err := l.Pin("copy", nil, time.Hour)
					require.NoError(t, err)
				}
				require.EqualValues(t, 2, l.written.seg, "a renewal ends no segment")
				b := segmentBytes(t, dir, 1)
				require.Equal(t, byte(endMark), b[len(b)-1], "the segment that had room is complete")
			}
			copied := copyWhile(t, dir, write)
			require.NoError(t, l.Close())
			r, err := OpenReader(vfs.OS{}, copied, 0, ReaderOptions{})
			require.NoError(t, err)
			n := 0
			for ; err == nil; n++ {
				_, err = r.Next()
			}
			var gap *GapError
			if held {
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, all, n-1)
			} else {
				require.ErrorAs(t, err, &gap)
				require.Positive(t, gap.Short)
			}
			require.NoError(t, r.Close())
		})
	}
}

func TestWithoutRoom(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	for _, records := range []int{17, 18, 4095, 4096, 4097, 9000} {
		for _, room := range []int{0, 1, 4095, 4096, 4097, 50_000} {
			for _, promised := range []int{17, records, records + room/2} {
				require.NoError(t, os.WriteFile(name, append(bytes.Repeat([]byte{endMark}, records), make([]byte, room)...), filePerm))
				f, err := vfs.OS{}.OpenFile(name, readOnly, 0)
				require.NoError(t, err)
				size, err := withoutRoom(f, int64(records+room), int64(promised))
				require.NoError(t, err)
				require.Equal(t, int64(max(records, promised)), size, "%d bytes of records, %d of room, %d promised", records, room, promised)
				require.NoError(t, f.Close())
			}
		}
	}
}
