package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
	"gotycoon/internal/needs"
	"gotycoon/internal/pgserver"
)

// ask sends a request and returns the answer's body.
func ask(t *testing.T, method, body, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Less(t, answer.StatusCode, 300, url)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

// What the text invites to works: what one server has stored, the others have, and so has the next
// run.
func TestRun(t *testing.T) {
	if pgserver.Find() == "" {
		needs.Missing(t, "PostgreSQL", "postgresql")
	}
	dir, err := os.MkdirTemp("", "runcluster") // PostgreSQL's user must be able to get there
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	defer os.RemoveAll(dir)
	o := options{dir: dir, program: ktproc.Build(t, "ktserver"), port: freeport.TakeRow(t, servers), console: freeport.Take(t)}
	session := func(use func(at func(i int) string)) {
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		said, to := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			err := run(ctx, o, to)
			_ = to.Close()
			ended <- err
		}()
		text := ""
		for buffer := make([]byte, 4096); !strings.Contains(text, "Ctrl-C"); {
			n, err := said.Read(buffer)
			require.NoError(t, err, text)
			text += string(buffer[:n])
		}
		require.Contains(t, text, fmt.Sprintf("curl http://localhost:%d/greeting", o.port+1))
		go func() { _, _ = io.Copy(io.Discard, said) }()
		use(func(i int) string { return fmt.Sprintf("http://127.0.0.1:%d", o.port+i) })
		interrupt()
		require.NoError(t, <-ended)
	}
	session(func(at func(int) string) {
		ask(t, http.MethodPut, "hello", at(0)+"/greeting")
		require.Equal(t, "hello", ask(t, http.MethodGet, "", at(1)+"/greeting"))
		require.Equal(t, "num\t1\n", ask(t, http.MethodGet, "", at(2)+"/rpc/increment?key=visits&num=1"))
		require.Contains(t, ask(t, http.MethodGet, "", fmt.Sprintf("http://127.0.0.1:%d/", o.console)), "gotycoon")
		log, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("server-%d.log", o.port)))
		require.NoError(t, err)
		require.Contains(t, string(log), "connected to the engine")
		require.NotContains(t, string(log), "warning: ")
	})
	session(func(at func(int) string) {
		require.Equal(t, "hello", ask(t, http.MethodGet, "", at(2)+"/greeting"))
		require.Equal(t, "num\t2\n", ask(t, http.MethodGet, "", at(0)+"/rpc/increment?key=visits&num=1"))
	})
}
