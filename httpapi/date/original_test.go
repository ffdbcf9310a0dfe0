package date_test

import (
	"bytes"
	_ "embed"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/httpapi/date"
)

//go:embed testdata/original.tsv
var original []byte

// Each line of the table has a date, often one with damage, and what the original server stored for it. "past" stands for a time before
// the table was made, which the server did not tell; "never" for no expiration time.
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
