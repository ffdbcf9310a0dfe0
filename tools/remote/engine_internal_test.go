package remote

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// Who asks a server of an engine for its update log is told why there is none.
func TestALogIsMissingBecauseOfAnEngine(t *testing.T) {
	features := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/tab-separated-values")
		_, _ = w.Write([]byte("conf_kt_features\t" + features + "\n"))
	}))
	defer server.Close()
	c := client.New(strings.TrimPrefix(server.URL, "http://"), client.Options{})
	defer c.Close()
	features = "(epoll)(gotycoon 1.0.0)(revision 1)"
	require.Equal(t, client.ErrNoLog, inEngine(t.Context(), c, client.ErrNoLog))
	features += "(engine postgres://kt@db1,db2/kt)"
	err := inEngine(t.Context(), c, client.ErrNoLog)
	require.ErrorIs(t, err, client.ErrNoLog)
	require.ErrorContains(t, err, "in the engine postgres://kt@db1,db2/kt, whose log")
}
