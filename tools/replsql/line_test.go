package replsql

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func at(seconds int64) *int64 { return &seconds }

func TestParse(t *testing.T) {
	for line, want := range map[string]change{
		"1795229613830000000\t1\t0\tset\tamFwYW4=\t//////90b2t5bw==": {stamp: 1795229613830000000, sid: 1, op: opSet, key: []byte("japan"), value: []byte("tokyo")},
		"2\t3\t4\tset\tZGVhZA==\tAAAAAAFnb25l":                       {stamp: 2, sid: 3, dbid: 4, op: opSet, key: []byte("dead"), value: []byte("gone"), expires: at(1)},
		"2\t3\t9\tset\t\t":                                           {stamp: 2, sid: 3, dbid: 9, op: opSet, key: []byte{}, value: []byte{}},
		"2\t3\t4\tremove\t":                                          {stamp: 2, sid: 3, dbid: 4, op: opRemove, key: []byte{}},
		"9223372036854775807\t3\t4\tclear":                           {stamp: 1<<63 - 1, sid: 3, dbid: 4, op: opClear},
		"2\t3\t4\tunknown\toQ==":                                     {stamp: 2, sid: 3, dbid: 4, op: opUnknown, key: []byte{0xA1}},
	} {
		have, err := parse(line, map[int]bool{9: true})
		require.NoError(t, err, "%q", line)
		require.Equal(t, want, have, "%q", line)
	}
}

// TestParseRefuses joins two lines, with the first one cut off anywhere, and tries other malformed
// lines.
func TestParseRefuses(t *testing.T) {
	whole := "1795229613830000000\t1\t0\tset\tamFwYW4=\t//////90b2t5bw=="
	for cut := 1; cut <= len(whole); cut++ {
		_, err := parse(whole[:cut]+whole, nil)
		require.Error(t, err, "%q", whole[:cut]+whole)
	}
	for _, line := range []string{
		"", "\t\t\t", "0\t1\t0\tclear", "-1\t1\t0\tclear", "9223372036854775808\t1\t0\tclear", "1\t65536\t0\tclear", "1\t1\tx\tclear",
		"1\t1\t0\tclear\t", "1\t1\t0\tset\tYQ==", "1\t1\t0\tset\tYQ==\tYQ==", "1\t1\t0\tremove\t?", "1\t1\t0\tadd\tYQ==\tYQ==",
	} {
		_, err := parse(line, nil)
		require.Error(t, err, "%q", line)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1795229613830000000\t1\t0\tset\tamFwYW4=\t//////90b2t5bw==")
	f.Add("2\t3\t4\tclear")
	f.Fuzz(func(t *testing.T, line string) {
		c, err := parse(line, nil)
		if err == nil {
			require.Positive(t, c.stamp)
		}
	})
}
