package console_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/admin/console"
)

func get(t *testing.T, path, tag string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	r.Header.Set("If-None-Match", tag)
	w := httptest.NewRecorder()
	console.Handler().ServeHTTP(w, r)
	return w
}

func TestFiles(t *testing.T) {
	page := get(t, console.Path, "")
	require.Equal(t, http.StatusOK, page.Code)
	require.Equal(t, "text/html; charset=utf-8", page.Header().Get("Content-Type"))
	require.Contains(t, page.Header().Get("Content-Security-Policy"), "default-src 'none'")
	require.NotContains(t, page.Header().Get("Content-Security-Policy"), "unsafe")
	require.Equal(t, "nosniff", page.Header().Get("X-Content-Type-Options"))

	again := get(t, console.Path, page.Header().Get("ETag"))
	require.Equal(t, http.StatusNotModified, again.Code)
	require.Empty(t, again.Body.String())

	require.Equal(t, "text/javascript; charset=utf-8", get(t, console.Path+"app.js", "").Header().Get("Content-Type"))
	require.Equal(t, "text/css; charset=utf-8", get(t, console.Path+"style.css", "").Header().Get("Content-Type"))
	for _, none := range []string{"none.js", "../console.go", "static/app.js"} {
		require.Equal(t, http.StatusNotFound, get(t, "/console/"+none, "").Code, none)
	}
}

// TestNothingFromElsewhere: nothing in the files names another host, and nothing needs a policy
// that is weaker.
func TestNothingFromElsewhere(t *testing.T) {
	files, err := filepath.Glob("static/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	foreign := regexp.MustCompile(`https?://[^"'\s]+`)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, url := range foreign.FindAllString(string(text), -1) {
			// The name of a language, which nobody fetches.
			require.Equal(t, "http://www.w3.org/2000/svg", url, path)
		}
		for _, weak := range []string{"innerHTML", "eval(", "new Function", " style=", "document.write", "insertAdjacentHTML"} {
			require.False(t, strings.Contains(string(text), weak), "%s has %s", path, weak)
		}
	}
}
