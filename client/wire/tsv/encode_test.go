package tsv_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"gotycoon/client/wire/tsv"
)

func TestChoose(t *testing.T) {
	for _, tc := range []struct {
		name  string
		value string
		want  tsv.Encoding
	}{
		{"plain text", "hello world", tsv.Raw},
		{"255 bytes of text", strings.Repeat("x", 255), tsv.Raw},
		{"256 bytes of text", strings.Repeat("x", 256), tsv.URL},
		{"8-bit bytes", "\x80\xff", tsv.Raw},
		{"one control byte", "a\tb", tsv.URL},
		{"delete", "a\x7fb", tsv.URL},
		{"mostly control bytes", strings.Repeat("\x00", 20), tsv.Base64},
		{"punctuation that the estimate takes for plain", strings.Repeat("!", 256), tsv.URL},
		{"punctuation", strings.Repeat("%", 256), tsv.Base64},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, table("k", []byte(tc.value)).Choose())
		})
	}
	require.Equal(t, tsv.Raw, (&tsv.Rows{}).Choose())
}

func table(name string, value []byte) *tsv.Rows {
	var r tsv.Rows
	r.Add([]byte(name), value)
	return &r
}

// Every byte, wherever it stands, makes a column binary or does not.
func TestChooseFindsControlBytes(t *testing.T) {
	for c := range 256 {
		for length := 1; length <= 18; length++ {
			for at := range length {
				value := bytes.Repeat([]byte{0x80}, length)
				value[at] = byte(c)
				binary := table(" ", value).Choose() != tsv.Raw
				require.Equal(t, c < 0x20 || c == 0x7f, binary, "%x", value)
			}
		}
	}
}

func TestAppendURL(t *testing.T) {
	require.Equal(t, "aZ0_-.~%21%2a%27%28%29%20%00%ff", string(tsv.AppendURL(nil, []byte("aZ0_-.~!*'() \x00\xff"))))
}

var encodings = []tsv.Encoding{tsv.Raw, tsv.Base64, tsv.Quoted, tsv.URL}

// Rows are in the order of their encoded names, have the announced length, and decode to what they
// were.
func TestEncodeDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows tsv.Rows
		for range rapid.IntRange(0, 12).Draw(t, "rows") {
			rows.Add(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "name"), rapid.SliceOf(rapid.Byte()).Draw(t, "value"))
		}
		checkRoundTrip(t, &rows, rapid.SampledFrom(encodings[1:]).Draw(t, "encoding"))
	})
}

type failer interface {
	require.TestingT
	Helper()
}

func checkRoundTrip(t failer, rows *tsv.Rows, e tsv.Encoding) {
	t.Helper()
	rows.Sort()
	want := pairs(rows)
	body := rows.AppendEncoded(nil, e)
	require.Len(t, body, rows.EncodedLen(e))
	requireSortedLines(t, body)
	var back tsv.Rows
	tsv.Decode(&back, body, e.ContentType())
	back.Sort()
	require.Equal(t, want, pairs(&back))
}

func requireSortedLines(t failer, body []byte) {
	t.Helper()
	var names [][]byte
	for line := range bytes.Lines(body) {
		name, _, ok := bytes.Cut(line, []byte("\t"))
		require.True(t, ok)
		names = append(names, name)
	}
	require.True(t, slices.IsSortedFunc(names, bytes.Compare), "%q", names)
}

func FuzzTSV(f *testing.F) {
	f.Add([]byte("key\tvalue\n"), byte(0), "")
	f.Add([]byte("aw==\tdg\n"), byte(1), "colenc=B")
	f.Add([]byte("%6b\t%zz%\n"), byte(3), "colenc=U")
	f.Add([]byte("k=\t=0=\n"), byte(2), "colenc=Q")
	f.Add([]byte("a=1&b"), byte(3), tsv.TypeForm)
	f.Fuzz(func(t *testing.T, body []byte, pick byte, attribute string) {
		var rows tsv.Rows
		tsv.Decode(&rows, bytes.Clone(body), tsv.TypeTSV+";"+attribute)
		tsv.Decode(&rows, body, attribute)
		checkRoundTrip(t, &rows, encodings[1+int(pick)%3])
		e := rows.Choose()
		require.Len(t, rows.AppendEncoded(nil, e), rows.EncodedLen(e))
	})
}
