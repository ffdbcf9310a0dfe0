package remote

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBar(t *testing.T) {
	for _, size := range []int64{1000, -1} {
		var out bytes.Buffer
		b := newBar(&out, size)
		for range 10 {
			b.done(7, 100)
		}
		b.end()
		require.Contains(t, out.String(), "70 records, ")
		require.Regexp(t, `70 records, \d+/s\n$`, out.String())
	}
}
