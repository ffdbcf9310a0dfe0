package show

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBar(t *testing.T) {
	for _, size := range []int64{1000, -1} {
		var out bytes.Buffer
		b := newBar(&out, ProgressOptions{Items: "records", Size: size})
		for range 10 {
			b.Done(7, 100)
		}
		b.End()
		require.Contains(t, out.String(), "70 records, ")
		require.Regexp(t, `70 records, \d+/s\n$`, out.String())
	}
}

func TestDots(t *testing.T) {
	for _, c := range []struct {
		o    ProgressOptions
		n    int
		want string
	}{
		{ProgressOptions{}, 0, ""},
		{ProgressOptions{}, 3, "... (3)\n"},
		{ProgressOptions{}, 50, ".................................................. (50)\n"},
		{ProgressOptions{Every: 100, Ending: " (end)"}, 769, "....... (end)\n"},
		{ProgressOptions{Every: 1000, Ending: " (end)"}, 5, " (end)\n"},
	} {
		var out bytes.Buffer
		p := NewProgress(&out, &out, &out, c.o)
		for range c.n {
			p.Done(1, 10)
		}
		p.End()
		require.Equal(t, c.want, out.String())
	}
}
