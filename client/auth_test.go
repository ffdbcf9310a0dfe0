package client_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// What answers in its own way, such as a port that speaks TLS, is quoted.
func TestAnErrorThatIsPlainText(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rpc/clear" {
			http.Error(w, strings.Repeat("x", 1000), http.StatusBadGateway)
			return
		}
		http.Error(w, "this port speaks TLS: use https", http.StatusBadRequest)
	}))
	defer s.Close()
	c := client.New(s.Listener.Addr().String(), client.Options{})
	defer c.Close()
	require.ErrorContains(t, c.DB("").Set(t.Context(), "a", nil, client.Never), "400 Bad Request: this port speaks TLS: use https")
	err := c.DB("").Clear(t.Context())
	require.ErrorContains(t, err, "502 Bad Gateway")
	require.NotContains(t, err.Error(), "xxx")
}
