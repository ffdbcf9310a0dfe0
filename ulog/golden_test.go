package ulog

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/recordings"
	"gotycoon/internal/vfs"
)

func readLines(t *testing.T, name string) (lines []string) {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	require.NoError(t, s.Err())
	return lines
}

// dumpLine is a record as ktutilmgr prints it.
func dumpLine(g got) string {
	return fmt.Sprintf("%d\t%s", g.stamp, strings.ToUpper(fmt.Sprintf("% x", g.msg)))
}

// recordLine is a record as in records.tsv, without segment and offset.
func recordLine(t *testing.T, g got) string {
	t.Helper()
	u, err := ParseMessage([]byte(g.msg))
	require.NoError(t, err)
	line := fmt.Sprintf("%d\t%d\t%d\t", g.stamp, u.SID, u.DBID)
	switch u.Op {
	case OpSet:
		return line + fmt.Sprintf("set\t%x\t%x", u.Key, u.Value)
	case OpRemove:
		return line + fmt.Sprintf("remove\t%x\t-", u.Key)
	}
	return line + "clear\t-\t-"
}

func TestGoldenRecords(t *testing.T) {
	golden := recordings.Dir(t, "ulog")
	for _, run := range []string{"main", "persist"} {
		t.Run(run, func(t *testing.T) {
			dir := filepath.Join(golden, run)
			all, damage, reports := drain(t, filepath.Join(dir, "ulog"), 0)
			require.Empty(t, damage)
			require.Empty(t, reports)

			var dump, records, want []string
			for _, g := range all {
				dump = append(dump, dumpLine(g))
				records = append(records, recordLine(t, g))
				u, err := ParseMessage([]byte(g.msg))
				require.NoError(t, err)
				require.Equal(t, g.msg, string(AppendMessage(nil, &u)))
			}
			require.Equal(t, readLines(t, filepath.Join(dir, "ktutilmgr-ulog.tsv")), dump)
			for _, line := range readLines(t, filepath.Join(dir, "records.tsv"))[1:] {
				want = append(want, strings.Join(strings.Split(line, "\t")[2:], "\t"))
			}
			require.Equal(t, want, records)
		})
	}
}

// TestGoldenContinue appends to a log of the original: the old records stay, and its segments
// remain readable by it.
func TestGoldenContinue(t *testing.T) {
	golden := recordings.Dir(t, "ulog")
	dir := copyDir(t, filepath.Join(golden, "main/ulog"))
	before, _, _ := drain(t, dir, 0)
	l := mustOpen(t, dir, Options{})
	require.Equal(t, before[len(before)-1].stamp, l.Last())
	mustCommit(t, l, "ours")
	require.NoError(t, l.Close())

	all, damage, reports := drain(t, dir, 0)
	require.Empty(t, damage)
	require.Empty(t, reports)
	require.Equal(t, before, all[:len(before)])
	require.Equal(t, []string{"ours"}, keysOf(t, all[len(before):]))

	b, err := os.ReadFile(filepath.Join(dir, "0000000003.ulog"))
	require.NoError(t, err)
	h, err := parseHeader(b)
	require.NoError(t, err)
	require.Equal(t, header{int64(len(b)), all[len(all)-1].stamp}, h)
	require.Len(t, b, 529+commitSize+frameSize+messageSize(&sets("ours")[0])+commitSize)
}

// variant is what the original made of one of the damaged logs.
type variant struct {
	ID, Name  string
	Ktutilmgr struct{ Lines int } `json:"ktutilmgr_ulog"`
	Sizes     []*int64
}

func variants(t testing.TB, golden string) (vs []variant) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(golden, "truncated/summary.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &vs))
	require.Len(t, vs, 28)
	return vs
}

// moreRecovered is how many records of each damaged log we find where the original finds fewer.
var moreRecovered = map[string]int{
	"v01": 63, "v02": 63, "v03": 63, "v04": 63, "v05": 55, // cut off
	"v18": 63, "v19": 63, // the oldest one is
	"v20": 63, "v21": 63, "v23": 64, // its last record is bad, or what follows it
	"v24": 31, // record 4 is bad: on with the next segment
	"v27": 53, // the one in the middle is empty
}

func TestGoldenDamagedRead(t *testing.T) {
	golden := recordings.Dir(t, "ulog")
	for _, v := range variants(t, golden) {
		t.Run(v.ID+" "+v.Name, func(t *testing.T) {
			all, damage, reports := drain(t, filepath.Join(golden, "truncated", v.ID, "ulog"), 0)
			want := max(v.Ktutilmgr.Lines, moreRecovered[v.ID])
			require.Equal(t, want, len(all))
			told := len(reports)+len(damage) > 0
			require.Equal(t, want < 64 && !untold[v.ID], told && v.ID != "v23", "%v %v", reports, damage)
		})
	}
}

// untold are the logs with whole records cut off and the header corrected.
var untold = map[string]bool{"v12": true, "v13": true, "v22": true}

func TestGoldenDamagedOpen(t *testing.T) {
	golden := recordings.Dir(t, "ulog")
	refused := map[string]int64{"v07": 0, "v09": 495, "v10": 495, "v11": 495, "v17": 0}
	for _, v := range variants(t, golden) {
		t.Run(v.ID+" "+v.Name, func(t *testing.T) {
			dir := copyDir(t, filepath.Join(golden, "truncated", v.ID, "ulog"))
			before, _, _ := drain(t, dir, 0)
			l, err := Open(dir, Options{})
			if offset, ok := refused[v.ID]; ok {
				var damage *DamageError
				require.ErrorAs(t, err, &damage)
				require.Equal(t, filepath.Join(dir, "0000000003.ulog"), damage.File)
				require.Equal(t, offset, damage.Offset)
				return
			}
			require.NoError(t, err)
			mustCommit(t, l, "new")
			require.NoError(t, l.Close())
			all, _, _ := drain(t, dir, 0)
			require.Equal(t, before, all[:len(before)], "what a reader has seen stays")
			require.Equal(t, []string{"new"}, keysOf(t, all[len(before):]))
		})
	}
}

func TestGoldenOddMessages(t *testing.T) {
	golden := recordings.Dir(t, "ulog")
	all, damage, reports := drain(t, filepath.Join(golden, "odd-messages"), 0)
	require.Empty(t, damage)
	require.Empty(t, reports)
	var want []string
	for _, line := range readLines(t, filepath.Join(golden, "odd-messages.txt"))[:20] {
		i := strings.LastIndex(line, " 17000000000000000")
		if i < 0 {
			continue // the one with stamp 0, which is never newer than what was asked for
		}
		stamp, msg, _ := strings.Cut(line[i+1:], " ")
		want = append(want, stamp+" "+msg)
	}
	var have []string
	for _, g := range all {
		have = append(have, fmt.Sprintf("%d %s", g.stamp, hex.EncodeToString([]byte(g.msg))))
	}
	require.Len(t, have, 19)
	require.Equal(t, want, have)

	l := mustOpen(t, copyDir(t, filepath.Join(golden, "odd-messages")), Options{})
	require.Equal(t, Stamp(1700000000000000020), l.Last())
	require.NoError(t, l.Close())
}

// TestGoldenPosition asks for the stamps of reader-position.txt and compares the counts on the
// intact log.
func TestGoldenPosition(t *testing.T) {
	golden := recordings.Dir(t, "ulog")
	dir := filepath.Join(golden, "main/ulog")
	var ends []Stamp
	for n := range uint64(3) {
		h, _, err := statSegment(vfs.OS{}, dir, n+1)
		require.NoError(t, err)
		ends = append(ends, h.last)
	}
	const second = 1_000_000_000
	tests := []struct {
		name  string
		after Stamp
		count int
	}{
		{"0", 0, 64},
		{"max1-1", ends[0] - 1, 29},
		{"max1", ends[0], 28},
		{"max1+1e9", ends[0] + second, 24},
		{"max1+1e9+1", ends[0] + second + 1, 24},
		{"max2", ends[1], 17},
		{"max2+1e9", ends[1] + second, 12},
		{"max2+1e9+1", ends[1] + second + 1, 12},
		{"max3", ends[2], 0},
		{"max3+1e9+1", ends[2] + second + 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			all, _, _ := drain(t, dir, tt.after)
			require.Equal(t, tt.count, len(all))
		})
	}
}

// TestGoldenPositionByHeader shows that the header decides where to begin, as in
// reader-position.txt: with the largest stamp of segment 1 made 1 it is passed over.
func TestGoldenPositionByHeader(t *testing.T) {
	golden := recordings.Dir(t, "ulog")
	dir := copyDir(t, filepath.Join(golden, "main/ulog"))
	name := filepath.Join(dir, "0000000001.ulog")
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	h, err := parseHeader(b)
	require.NoError(t, err)
	copy(b, encodeHeader(header{h.size, 1}))
	require.NoError(t, os.WriteFile(name, b, 0o644))
	for after, count := range map[Stamp]int{0: 64, 1_000_000_001: 64, 2_000_000_000: 28} {
		all, _, _ := drain(t, dir, after)
		require.Equal(t, count, len(all), "after %d", after)
	}
}

// TestGoldenSkipDamage is a reader that meets a bad record: it says where until it is told to go
// on.
func TestGoldenSkipDamage(t *testing.T) {
	golden := recordings.Dir(t, "ulog")
	o := vfs.OS{}
	r, err := OpenReader(o, filepath.Join(golden, "truncated/v24/ulog"), 0, ReaderOptions{})
	require.NoError(t, err)
	defer r.Close()
	for range 4 {
		if _, err = r.Next(); err != nil {
			break
		}
	}
	var damage *DamageError
	require.ErrorAs(t, err, &damage)
	require.Equal(t, "0000000001.ulog", filepath.Base(damage.File))
	_, again := r.Next()
	require.Equal(t, err, again)
	require.Equal(t, err, r.Lost())
	r.SkipDamage()
	require.NoError(t, r.Lost())
	n := 0
	for ; err != io.EOF; n++ {
		_, err = r.Next()
		require.True(t, err == nil || errors.Is(err, io.EOF))
	}
}
