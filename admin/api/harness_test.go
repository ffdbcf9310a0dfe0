package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/admin"
	"gotycoon/admin/api"
	"gotycoon/db"
	"gotycoon/snapshot"
)

// served is an API on a listener.
type served struct {
	t    *testing.T
	api  *api.API
	addr string
	c    *db.Catalog
}

// stranger is refused for want of a name.
type stranger struct{ error }

// Status is what the reply says.
func (stranger) Status() int { return http.StatusUnauthorized }

// authorize lets "root" do everything and "reader" read.
func authorize(r *http.Request, asAdmin bool) error {
	switch user, _, _ := r.BasicAuth(); {
	case user == "":
		return stranger{errors.New("who are you")}
	case asAdmin && user != "root":
		return errors.New("only admins may")
	}
	return nil
}

// serve starts an API. The databases are a file and one in memory.
func serve(t *testing.T, o api.Options, change func(*admin.Options, *api.Sources)) *served {
	t.Helper()
	c, err := db.Open([]string{filepath.Join(t.TempDir(), "a.kct"), "*"}, db.Options{})
	require.NoError(t, err)
	s := &served{t: t, api: api.New(o), c: c}
	listener := admin.Options{Addr: "127.0.0.1:0", Routes: func(l *admin.Server) { s.api.Mount(l) }}
	sources := api.Sources{Catalog: c}
	if change != nil {
		change(&listener, &sources)
	}
	l, err := admin.New(listener)
	require.NoError(t, err)
	l.Start()
	s.addr = l.Addr().String()
	s.api.Open(sources)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		s.api.Close()
		require.NoError(t, l.Close())
		require.NoError(t, c.Close())
	})
	return s
}

// ask sends a request; header has names and values.
func (s *served) ask(method, path, body string, header ...string) (status int, answer string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+"/api/"+path, strings.NewReader(body))
	require.NoError(s.t, err)
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	w, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	require.NoError(s.t, err)
	return w.StatusCode, string(text)
}

// change sends a request as the console does.
func (s *served) change(method, path, body string) (status int, answer string) {
	s.t.Helper()
	return s.ask(method, path, body, api.Header, "1")
}

// get returns an answer in JSON.
func (s *served) get(path string) map[string]any {
	s.t.Helper()
	status, text := s.ask(http.MethodGet, path, "")
	require.Equal(s.t, http.StatusOK, status, text)
	answer := map[string]any{}
	decoder := json.NewDecoder(bytes.NewBufferString(text))
	require.NoError(s.t, decoder.Decode(&answer))
	return answer
}

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func query(text string) string { return url.QueryEscape(b64(text)) }

func decoded(t *testing.T, text string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	return string(b)
}

// readAll adds the records of a snapshot to what is there. The stored form has the expiration time
// in front.
func readAll(t *testing.T, r *snapshot.Reader, to map[string]string) {
	t.Helper()
	const prefix = 5
	for {
		key, value, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		to[string(key)] = string(value[prefix:])
	}
}
