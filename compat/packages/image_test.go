package packages

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
)

// recipe is what a Dockerfile says of the image: the command that builds what is in it, and how a
// container runs.
type recipe struct {
	build                       string
	user                        uint32
	dir                         string
	entrypoint, command, health []string
}

func readRecipe(t *testing.T) (r recipe) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "packaging/Dockerfile"))
	require.NoError(t, err)
	said := func(pattern string) string {
		m := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(strings.ReplaceAll(string(text), "\\\n", ""))
		require.NotNil(t, m, pattern)
		return m[1]
	}
	list := func(pattern string) (words []string) {
		require.NoError(t, json.Unmarshal([]byte(said(pattern)), &words), pattern)
		return words
	}
	user, err := strconv.ParseUint(said(`^USER (\d+):\d+$`), 10, 32)
	require.NoError(t, err)
	return recipe{
		build: said(`^RUN (CGO_ENABLED=0 .*)$`), user: uint32(user), dir: said(`^WORKDIR (/data)$`),
		entrypoint: list(`^ENTRYPOINT (.*)$`), command: list(`^CMD (.*)$`), health: list(`^HEALTHCHECK .* CMD (.*)$`),
	}
}

// TestImage builds what the image holds, and runs it as a container does: in a file system that has
// nothing else, as the image's user. It stops in time, and comes back with its records.
func TestImage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a file system of the test's own needs root")
	}
	r, dir := readRecipe(t), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "usr"), 0o755))
	build := command(t, "sh", "-euc", strings.NewReplacer("/out/bin/", dir+"/usr/bin/", "/out/data", dir+"/data").Replace(r.build))
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chown(filepath.Join(dir, "data"), int(r.user), int(r.user)))

	port := strconv.Itoa(freeport.Take(t))
	inside := func(words ...string) *exec.Cmd {
		cmd := command(t, words[0], words[1:]...)
		cmd.Path, cmd.Dir, cmd.Env = words[0], r.dir, []string{"HOME=/"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: r.user, Gid: r.user}}
		return cmd
	}
	run := func() (stop func()) {
		args := append([]string{"-port", port}, r.command...)
		server := inside(append(r.entrypoint, args...)...)
		server.Stdout, server.Stderr = t.Output(), t.Output()
		require.NoError(t, server.Start())
		require.Eventually(t, func() bool {
			return inside(append(r.health, "-port", port)...).Run() == nil
		}, 30*time.Second, 50*time.Millisecond, "the container does not become healthy")
		return func() {
			require.NoError(t, server.Process.Signal(syscall.SIGTERM))
			require.NoError(t, server.Wait())
		}
	}
	url := "http://" + net.JoinHostPort("127.0.0.1", port) + "/tea"
	stop := run()
	put, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader("green"))
	require.NoError(t, err)
	reply, err := http.DefaultClient.Do(put)
	require.NoError(t, err)
	reply.Body.Close()
	require.Equal(t, http.StatusCreated, reply.StatusCode)
	stop()
	stop = run()
	reply, err = http.Get(url)
	require.NoError(t, err)
	reply.Body.Close()
	require.Equal(t, http.StatusOK, reply.StatusCode)
	stop()
}
