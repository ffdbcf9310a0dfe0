package ulog

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
)

// sample is a segment of three groups, "one", "two1 two2 two3", "three", as Close leaves it.
type sample struct {
	b    []byte
	ends [4]int64 // where the groups end; the first is the commit record without records
}

func newSample(t *testing.T) (s sample) {
	t.Helper()
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{Now: newClock().now})
	s.ends[0] = l.written.off
	for i, group := range [][]string{{"one"}, {"two1", "two2", "two3"}, {"three"}} {
		require.NoError(t, l.Wait(mustAppend(t, l, group...)))
		s.ends[i+1] = l.written.off
	}
	require.NoError(t, l.Close())
	var err error
	s.b, err = os.ReadFile(filepath.Join(dir, segmentName(1)))
	require.NoError(t, err)
	require.Len(t, s.b, int(s.ends[3]))
	return s
}

// lag makes the header say what it said after the i-th group.
func (s *sample) lag(i int) { binary.BigEndian.PutUint64(s.b[1:], uint64(s.ends[i])) }

// tell makes the header say that the segment is as long as it is.
func (s *sample) tell() { binary.BigEndian.PutUint64(s.b[1:], uint64(len(s.b))) }

// flip changes a byte.
func (s *sample) flip(off int64) { s.b[off] ^= 0x40 }

// foreign appends a record as the original would.
func (s *sample) foreign(key string) {
	u := set(key)
	s.b = appendRecord(s.b, 1_900_000_000_000_000_000, &u)
}

func (s *sample) write(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, segmentName(1)), s.b, filePerm))
	return dir
}

const sampleKeys = "one two1 two2 two3 three"

var recoverTests = []struct {
	name    string
	corrupt func(s *sample)
	keys    string // what is left; "" when refused
	torn    bool   // a tail is cut off
	group   int    // when refused: the damage begins behind this group
}{
	{"untouched", func(s *sample) {}, sampleKeys, false, 0},
	{"the header lags", func(s *sample) { s.lag(0) }, sampleKeys, false, 0},
	{"the last byte is missing", func(s *sample) { s.lag(1); s.b = s.b[:len(s.b)-1] }, "one two1 two2 two3", true, 0},
	{"the last commit record is missing", func(s *sample) { s.lag(1); s.b = s.b[:len(s.b)-commitSize] }, "one two1 two2 two3", true, 0},
	{"half a record is missing", func(s *sample) { s.lag(1); s.b = s.b[:s.ends[2]+20] }, "one two1 two2 two3", true, 0},
	{"half a record head is missing", func(s *sample) { s.lag(1); s.b = s.b[:s.ends[2]+5] }, "one two1 two2 two3", true, 0},
	{"a group of three has two records", func(s *sample) { s.lag(0); s.b = s.b[:s.ends[2]-commitSize-40] }, "one", true, 0},
	{"zeros at the end", func(s *sample) { s.b = append(s.b, make([]byte, 5)...) }, sampleKeys, true, 0},
	{"a block of zeros at the end", func(s *sample) { s.b = append(s.b, make([]byte, 4096)...) }, sampleKeys, true, 0},
	{"something like a segment at the end", func(s *sample) { s.b = append(s.b, s.b[:17]...) }, sampleKeys, true, 0},
	{"the last group is zeros", func(s *sample) { s.lag(2); clear(s.b[s.ends[2]:]) }, "one two1 two2 two3", true, 0},
	{"the group before the last is zeros", func(s *sample) { s.lag(1); clear(s.b[s.ends[1]:s.ends[2]]) }, "one", true, 0},
	{"a value changed in the last group", func(s *sample) { s.lag(2); s.flip(s.ends[2] + 30) }, "one two1 two2 two3", true, 0},
	{"a value changed in the second of three", func(s *sample) { s.lag(0); s.flip(s.ends[1] + 80) }, "one", true, 0},
	{"the stamp changed in the last commit record", func(s *sample) { s.lag(2); s.flip(s.ends[3] - commitSize + 3) }, "one two1 two2 two3", true, 0},
	{"the count changed in the last commit record", func(s *sample) { s.lag(2); s.flip(s.ends[3] - 2) }, "one two1 two2 two3", true, 0},
	{"the last commit record has another version", func(s *sample) { s.lag(2); s.flip(s.ends[3] - commitSize + 18) }, "one two1 two2 two3", true, 0},
	{"a group was written twice", func(s *sample) { s.b = append(s.b, s.b[s.ends[2]:]...) }, sampleKeys + " three", false, 0},
	{"the original appended", func(s *sample) { s.foreign("theirs"); s.tell() }, sampleKeys + " theirs", false, 0},
	{"the original appended, then crashed", func(s *sample) { s.foreign("theirs"); s.tell(); s.foreign("lost") }, sampleKeys + " theirs", true, 0},
	{"the original appended behind what it knows", func(s *sample) { s.foreign("theirs") }, sampleKeys, true, 0},
	{"shorter than the header says, in a commit record", func(s *sample) { s.b = s.b[:len(s.b)-10] }, sampleKeys, true, 0},
	{"shorter than the header says, in a record", func(s *sample) { s.b = s.b[:s.ends[2]+20] }, "one two1 two2 two3", true, 0},
	{"shorter than the header says, between groups", func(s *sample) { s.b = s.b[:s.ends[1]] }, "one", false, 0},
	{"nothing but zeros, as created", func(s *sample) { s.b = make([]byte, headerSize+commitSize) }, " ", false, 0},
	{"a header cut short, as created", func(s *sample) { s.lag(0); s.b = s.b[:12] }, " ", false, 0},
	{"the first commit record cut short, as created", func(s *sample) { s.lag(0); s.b = s.b[:30] }, " ", false, 0},
	{"empty", func(s *sample) { s.b = nil }, " ", false, 0},

	{"damage: a value changed in the first group", func(s *sample) { s.flip(s.ends[0] + 30) }, "", false, 0},
	{"damage: a value changed in the last group", func(s *sample) { s.flip(s.ends[2] + 30) }, "", false, 2},
	{"damage: a stamp changed in a commit record", func(s *sample) { s.flip(s.ends[3] - commitSize + 3) }, "", false, 2},
	{"damage: a group is zeros", func(s *sample) { clear(s.b[s.ends[1]:s.ends[2]]) }, "", false, 1},
	{"damage: a record has no start mark", func(s *sample) { s.b[s.ends[2]] = 0 }, "", false, 2},
	{"damage: a record leads behind the end", func(s *sample) { s.b[s.ends[1]+9] = 0x40 }, "", false, 1},
	{"damage: the last record leads a bit behind the end", func(s *sample) { s.b[s.ends[2]+12] += 40 }, "", false, 2},
	{"damage: shorter than the header says, and a value changed", func(s *sample) { s.b = s.b[:len(s.b)-10]; s.flip(s.ends[0] + 30) }, "", false, 0},
}

func TestRecover(t *testing.T) {
	for _, tt := range recoverTests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSample(t)
			tt.corrupt(&s)
			dir := s.write(t)
			if tt.keys == "" {
				requireDamage(t, dir, s.ends[tt.group])
				return
			}
			var text logText
			l, err := Open(dir, Options{Logger: text.logger()})
			require.NoError(t, err)
			end := l.written.off
			if strings.HasPrefix(tt.name, "shorter") { // the log goes on behind a gap
				end = requireGapAfterOpen(t, l, text.String())
			}
			requireAside(t, dir, tt.torn, s.b, end)
			require.Equal(t, tt.torn, strings.Contains(text.String(), "cut the torn end"), text.String())
			mustCommit(t, l, "new")
			require.NoError(t, l.Close())
			for range 2 {
				all, damage, _ := drain(t, dir, 0)
				require.Empty(t, damage)
				require.Equal(t, strings.Fields(tt.keys+" new"), keysOf(t, all))
				require.NoError(t, mustOpen(t, dir, Options{NoRepair: true}).Close())
			}
		})
	}
}

// requireGapAfterOpen checks that a log goes on behind a gap, and that this was said. It returns
// the size of the first segment.
func requireGapAfterOpen(t *testing.T, l *Log, text string) int64 {
	t.Helper()
	require.Equal(t, uint64(3), l.written.seg)
	require.Contains(t, text, "level=ERROR")
	require.Contains(t, text, l.segmentPath(1))
	r, err := l.NewReader(0)
	require.NoError(t, err)
	for err == nil {
		_, err = r.Next()
	}
	var gap *GapError
	require.ErrorAs(t, err, &gap)
	require.NoError(t, r.Close())
	h, size, err := statSegment(l.fs, l.dir, 1)
	require.NoError(t, err)
	require.Equal(t, size, h.size)
	return size
}

func requireDamage(t *testing.T, dir string, offset int64) {
	t.Helper()
	before, err := os.ReadFile(filepath.Join(dir, segmentName(1)))
	require.NoError(t, err)
	_, err = Open(dir, Options{})
	var damage *DamageError
	require.ErrorAs(t, err, &damage)
	require.Equal(t, filepath.Join(dir, segmentName(1)), damage.File)
	require.Equal(t, offset, damage.Offset)
	require.ErrorContains(t, err, damage.File)
	after, err := os.ReadFile(damage.File)
	require.NoError(t, err)
	require.Equal(t, before, after, "a refused segment is left alone")
}

// requireAside checks that what was cut off was put aside, in a file that is no segment.
func requireAside(t *testing.T, dir string, torn bool, segment []byte, end int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.torn-*"))
	require.NoError(t, err)
	if !torn {
		require.Empty(t, names)
		return
	}
	require.Len(t, names, 1)
	b, err := os.ReadFile(names[0])
	require.NoError(t, err)
	require.NotEqual(t, byte(magic), b[0])
	_, tail, ok := bytes.Cut(b, []byte("\n"))
	require.True(t, ok)
	require.True(t, bytes.HasSuffix(segment, tail))
	require.NotEmpty(t, tail)
	cut := int64(len(segment) - len(tail))
	require.Contains(t, []int64{cut, cut + commitSize}, end, "nothing between the end and what was put aside")
}

func TestRecoverNoRepair(t *testing.T) {
	for _, tt := range recoverTests {
		if !tt.torn {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			s := newSample(t)
			tt.corrupt(&s)
			dir := s.write(t)
			_, err := Open(dir, Options{NoRepair: true})
			require.ErrorIs(t, err, errTorn)
			require.ErrorContains(t, err, segmentName(1))
			b, err := os.ReadFile(filepath.Join(dir, segmentName(1)))
			require.NoError(t, err)
			require.Equal(t, s.b, b)
		})
	}
}

// TestRecoverReader reads what Open would repair: a reader delivers just what Open keeps.
func TestRecoverReader(t *testing.T) {
	for _, tt := range recoverTests {
		if tt.keys == "" {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			s := newSample(t)
			tt.corrupt(&s)
			if tt.name == "nothing but zeros, as created" {
				return // no header: damage for a reader
			}
			all, damage, _ := drain(t, s.write(t), 0)
			require.Empty(t, damage)
			require.Equal(t, strings.Fields(tt.keys), append([]string{}, keysOf(t, all)...))
		})
	}
}

func TestRecoverOlderSegmentsAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, Options{Limit: 1}, "one", "two", "three")
	damaged := filepath.Join(dir, segmentName(3)) // the first one holds no record
	b, err := os.ReadFile(damaged)
	require.NoError(t, err)
	b[50] ^= 1
	require.NoError(t, os.WriteFile(damaged, b, filePerm))

	require.NoError(t, mustOpen(t, dir, Options{}).Close())
	all, damage, _ := drain(t, dir, 0)
	require.Len(t, damage, 1)
	require.Equal(t, damaged, damage[0].File)
	require.Equal(t, []string{"one", "three"}, keysOf(t, all))
}

// afterList calls a function once, after the first look into a directory.
type afterList struct {
	vfs.FS
	then func()
}

func (a *afterList) ReadDir(name string) ([]string, error) {
	names, err := a.FS.ReadDir(name)
	if then := a.then; then != nil {
		a.then = nil
		then()
	}
	return names, err
}

// The process that has the log open may go on to another segment and remove the one that this
// process is about to wait for. That one must not come back: an empty segment is one that has lost
// its updates.
func TestOpenDoesNotBringBackASegment(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	mustCommit(t, l, "k")
	require.NoError(t, l.Close())
	fs := &afterList{vfs.OS{}, func() {
		require.NoError(t, os.Rename(filepath.Join(dir, segmentName(1)), filepath.Join(dir, segmentName(2))))
	}}
	l = mustOpen(t, dir, Options{FS: fs})
	defer l.Close()
	nums, err := listSegments(vfs.OS{}, dir)
	require.NoError(t, err)
	require.Equal(t, []uint64{2}, nums)
}
