package date_test

import (
	"bytes"
	_ "embed"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/httpapi/date"
)

func TestParse(t *testing.T) {
	const year2100 = 4102444800
	for text, want := range map[string]int64{
		"4102444800": year2100, "4102444800 ": year2100, "0x7fffffff": math.MaxInt32, "4102444800s": year2100,
		"68374080m": year2100, "1139568h": year2100, "47482d": year2100, "47482D": year2100, "0": 0,
		"2100-01-01": year2100, "2100-01-01T12:34": year2100 + 45240, "2100-01-01T00:00:00Z": year2100,
		"2100-01-01T00:00:00.5Z": year2100, "2100-01-01T09:00:00+09:00": year2100, "2100-01-01T00:00:00-05:00": year2100 + 18000,
		"2100/01/01 00:00:00": year2100, "2100/01/01 09:00:00+09:00": year2100,
		"Fri, 01 Jan 2100 00:00:00 GMT": year2100, "01 Jan 2100 00:00:00 GMT": year2100, "Fri, 01 jan 2100 00:00:00": year2100,
		"Fri, 01 Jan 2100 09:00:00 +0900": year2100, "Fri, 01 Jan 2100 09:00:00 JST": year2100,
		"Thu, 31 Dec 2099 19:00:00 EST": year2100, "Thu, 31 Dec 2099 16:00:00 PST": year2100,
		"2100-01": year2100, "2100-01-01T": year2100, "2100-01-01T12": year2100 + 43200, "2100-01-01X": year2100, "2100-01-01T00:00:00+9": year2100,
		"26 Nov 2036": 2111270400, "Sun, 28 Jan 2029 20:13": 1864252800, "1962938939 s": 1962938939, "0x": 0, "0xzz": 0,
		"99999999999999999999": math.MaxInt64, "99999999999999999d": math.MaxInt64 / 86400 * 86400, "0xffffffffffffffffff": math.MaxInt64,
		"Fri, 01 Jan 80 00:00:00 GMT": 315532800, "Fri, 01 Jan 2100 00:00:00 XYZ": year2100,
	} {
		require.Equal(t, want, date.Parse([]byte(text)), "%q", text)
	}
	for _, text := range []string{
		"", "abc", "-100", "+4102444800", "4102444800.5", "100 apples", "Friday, 01 Jan 2100 00:00:00 GMT",
		"Friday, 01-Jan-2100 00:00:00 GMT", "Fri Jan  1 00:00:00 2100", "Fri, 01 Foo 2100 00:00:00 GMT",
	} {
		require.Equal(t, int64(date.None), date.Parse([]byte(text)), "%q", text)
	}
}

//go:embed testdata/original.tsv
var original []byte

// Each line of the table has a date, often one with damage, and what the original server stored for
// it. "past" stands for a time before the table was made, which the server did not tell; "never"
// for no expiration time.
func TestDatesAsTheOriginalTakesThem(t *testing.T) {
	const (
		made  = 1_795_333_800 // when the table was made
		never = 1<<40 - 1     // from here on a record does not expire
	)
	lines := bytes.Split(bytes.TrimSpace(original), []byte("\n"))[1:]
	for _, line := range lines {
		quoted, want, ok := bytes.Cut(line, []byte("\t"))
		require.True(t, ok, "%s", line)
		text, err := strconv.Unquote(string(quoted))
		require.NoError(t, err, "%s", quoted)
		got := date.Parse([]byte(text))
		switch string(want) {
		case "never":
			require.True(t, got <= 0 || got >= never, "%q: %d", text, got)
		case "past":
			require.True(t, got > 0 && got <= made, "%q: %d", text, got)
		default:
			require.Equal(t, string(want), strconv.FormatInt(got, 10), "%q", text)
		}
	}
	require.Greater(t, len(lines), 300)
}

// Whatever a client sends, a date is read to some end.
func FuzzParse(f *testing.F) {
	f.Add("Fri, 01 Jan 2100 00:00:00 +0900")
	f.Add("2100-01-01T00:00:00.5+09:00")
	f.Add("2147483647-2147483647-")
	f.Fuzz(func(_ *testing.T, text string) { date.Parse([]byte(text)) })
}
