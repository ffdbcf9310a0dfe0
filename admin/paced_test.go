package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deadlines is a reply that notes what a client is given time for.
type deadlines struct {
	*httptest.ResponseRecorder
	left  []time.Duration
	sizes []int
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.left = append(d.left, time.Until(t))
	return nil
}

func (d *deadlines) Write(p []byte) (int, error) {
	d.sizes = append(d.sizes, len(p))
	return d.ResponseRecorder.Write(p)
}

// Every piece of a reply has a deadline, unless the handler sets its own.
func TestRepliesHaveDeadlines(t *testing.T) {
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	var own bool
	s := &Server{opts: Options{}}
	s.opts.setDefaults()
	h := s.guard(Open, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if own {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour))
		}
		n, err := w.Write(make([]byte, 2*pieceSize+5))
		require.NoError(t, err)
		require.Equal(t, 2*pieceSize+5, n)
	}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	h.ServeHTTP(d, r)
	require.Equal(t, []int{pieceSize, pieceSize, 5}, d.sizes)
	require.Len(t, d.left, 4, "one at the beginning, and one for each piece")
	for _, left := range d.left {
		require.InDelta(t, pieceTime.Seconds(), left.Seconds(), 20)
	}
	d.left, own = nil, true
	h.ServeHTTP(d, r)
	require.Len(t, d.left, 2)
	require.Greater(t, d.left[1], 2*pieceTime)
}
