package webport

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzRequest(f *testing.F) {
	for _, seed := range []string{"GET /fetch HTTP/1.1\r\n\r\n", "GET / HTTP/1.0\nConnection: Keep-Alive\nContent-Length: 3\n\nabc", "\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		size := headSize(text, 0)
		require.LessOrEqual(t, size, len(text))
		if size == 0 {
			return
		}
		for cut := range size { // a head that arrives in pieces is found at the same place
			require.Zero(t, headSize(text[:cut], 0))
		}
		r, err := parseHead(text[:size])
		require.True(t, err != nil || (r.body >= 0 && r.body <= maxBody))
		Params(r.target, func(string, []byte) bool { return true })
	})
}
