package ulog

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
)

// from is an update that was made elsewhere.
func from(log uint64, at Stamp, key string) Update {
	u := set(key)
	u.Origin = Origin{Log: log, Stamp: at}
	return u
}

type noted struct {
	dbid  uint16
	state string
}

// readOrigins returns the origins of the updates that a reader delivers.
func readOrigins(t *testing.T, r *Reader) (origins []Origin) {
	t.Helper()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return origins
		}
		require.NoError(t, err)
		origins = append(origins, e.Origin)
	}
}

// readNotes returns what the position records of a log after a stamp remember, as far as a reader
// accepts their groups.
func readNotes(t *testing.T, dir string, after Stamp) (notes []noted) {
	t.Helper()
	nums, err := listSegments(vfs.OS{}, dir)
	require.NoError(t, err)
	for _, n := range nums {
		path := filepath.Join(dir, segmentName(n))
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		head, err := parseHeader(raw)
		require.NoError(t, err)
		f, err := vfs.OS{}.OpenFile(path, readOnly, 0)
		require.NoError(t, err)
		defer f.Close()
		s := scanner{win: window{f: f}, path: path, head: head, off: headerSize}
		for err == nil {
			err = s.next(int64(len(raw)))
		}
		eachRecord(raw[headerSize:s.off], func(at Stamp, msg []byte) {
			if at > after && isPosition(msg) {
				f, _, err := parsePosition(nil, msg)
				require.NoError(t, err)
				notes = append(notes, noted{f.DBID, string(f.State)})
			}
		})
	}
	return notes
}

func TestOriginsTravelThroughTheLog(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Now: newClock().now})
	base := StampAt(newClock().now())
	mustAppend(t, l, "own 1")
	_, err := l.AppendReplicated([]Update{from(7, base+5, "a"), set("b"), from(9, base-1e12, "c"), from(7, base+9, "d")},
		&Position{DBID: 3, State: []byte("state")})
	require.NoError(t, err)
	middle := l.Last()
	mustAppend(t, l, "own 2")
	_, err = l.Append([]Update{from(1<<63, base+10, "e")})
	require.NoError(t, err)
	at, err := l.AppendReplicated(nil, &Position{DBID: 1})
	require.NoError(t, err)
	require.NoError(t, l.Wait(at))

	want := []Origin{{}, {Log: 7, Stamp: base + 5}, {}, {Log: 9, Stamp: base - 1e12}, {Log: 7, Stamp: base + 9}, {}, {Log: 1 << 63, Stamp: base + 10}}
	notes := []noted{{3, "state"}, {0, ""}, {1, ""}}
	check := func(after Stamp, want []Origin, notes []noted) {
		r, err := OpenReader(vfs.OS{}, dir, after, ReaderOptions{})
		require.NoError(t, err)
		defer r.Close()
		require.Equal(t, want, readOrigins(t, r))
		require.Equal(t, notes, readNotes(t, dir, after))
	}
	check(0, want, notes)
	check(middle-1, want[4:], notes[1:]) // begins within the group
	check(middle, want[5:], notes[1:])
	require.NoError(t, l.Close())
	l = mustOpen(t, dir, Options{})
	require.Equal(t, at, l.Last(), "the stamp of a record that only remembers counts, too")
	require.NoError(t, l.Close())
	check(0, want, notes)
}

// Half a group is nothing, wherever it is cut: what is remembered is there with its updates, or
// neither is.
func TestFollowRecordsStandAndFallWithTheirUpdates(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	mustCommit(t, l, "before")
	before := l.writer.end().off
	at, err := l.AppendReplicated([]Update{from(7, 5, "a"), from(7, 6, "b")}, &Position{State: []byte("s")})
	require.NoError(t, err)
	require.NoError(t, l.Wait(at))
	after := l.writer.end().off
	require.NoError(t, l.Close())
	whole, err := os.ReadFile(filepath.Join(dir, segmentName(1)))
	require.NoError(t, err)
	for cut := before; cut <= after; cut++ {
		name := filepath.Join(t.TempDir(), segmentName(1))
		head := encodeHeader(header{before, at})
		require.NoError(t, os.WriteFile(name, append(head, whole[headerSize:cut]...), filePerm))
		r, err := OpenReader(vfs.OS{}, filepath.Dir(name), 0, ReaderOptions{})
		require.NoError(t, err)
		origins, notes := readOrigins(t, r), readNotes(t, filepath.Dir(name), 0)
		require.NoError(t, r.Close())
		if cut < after {
			require.Len(t, origins, 1, cut)
			require.Empty(t, notes, cut)
		} else {
			require.Len(t, origins, 3)
			require.Len(t, notes, 1)
		}
	}
}

func TestStampsPassThoseOfOrigins(t *testing.T) {
	c := newClock()
	now := StampAt(c.now())
	l := mustOpen(t, t.TempDir(), Options{Now: c.now})
	defer l.Close()
	at, err := l.Append([]Update{from(7, now+1000, "a"), set("b")})
	require.NoError(t, err)
	require.Equal(t, now+1003, at, "the position record has one, too")
	require.NoError(t, l.Observe(now+5000))
	require.Equal(t, now+5001, mustAppend(t, l, "c"))
	require.NoError(t, l.Observe(now+10), "an older one changes nothing")
	require.Equal(t, now+5002, mustAppend(t, l, "d"))
	require.ErrorIs(t, l.Observe(maxStamp), errStamp)
	_, err = l.Append([]Update{from(7, maxStamp, "a")})
	require.ErrorIs(t, err, errStamp)
	require.Equal(t, now+5003, mustAppend(t, l, "e"))
}

func TestFollowRecordsOfLaterVersionsAreNotPassedOver(t *testing.T) {
	msg := appendPosition(nil, &Position{DBID: 1}, nil)
	msg[prefixSize]++
	_, _, err := parsePosition(nil, msg)
	require.ErrorIs(t, err, errPositionVersion)
}

func FuzzParseFollow(f *testing.F) {
	f.Add(appendPosition(nil, &Position{DBID: 1, State: []byte("s")}, nil)[prefixSize:])
	f.Add(appendPosition(nil, &Position{}, []Update{from(7, 5, "a"), set("b"), from(8, 1, "c")})[prefixSize:])
	f.Fuzz(func(t *testing.T, rest []byte) {
		msg := append([]byte{0, 0, 0xFF, 0xFF, positionOp}, rest...)
		if !isPosition(msg) {
			return
		}
		follow, origins, err := parsePosition(nil, msg)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(follow.State)+len(origins), len(msg))
		ups := make([]Update, len(origins))
		for i := range ups {
			ups[i].Origin = origins[i]
		}
		again, origins2, err := parsePosition(nil, appendPosition(nil, &follow, ups))
		require.NoError(t, err)
		require.Equal(t, follow.DBID, again.DBID)
		require.Equal(t, string(follow.State), string(again.State))
		if originLogs(ups) != nil {
			require.Equal(t, origins, origins2)
		}
	})
}

// An update has a later stamp here than in the log that it came from, although the clock is behind
// and the origin is older still.
func TestStampsAreBehindThoseOfTheMastersLog(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{Now: func() time.Time { return time.Unix(1000, 0) }})
	master := StampAt(time.Unix(2000, 0))
	up := from(7, StampAt(time.Unix(500, 0)), "k")
	at, err := l.AppendReplicated([]Update{up}, &Position{State: []byte("s"), After: master})
	require.NoError(t, err)
	require.Greater(t, at, master)
	_, err = l.AppendReplicated([]Update{up}, &Position{After: 1<<64 - 1})
	require.ErrorIs(t, err, errStamp)
	require.NoError(t, l.Close())
}
