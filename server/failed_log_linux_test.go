package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/server"
)

// The disk fills up under the log: /dev/full takes the place of its segment.
func TestFailedLogEndsTheServer(t *testing.T) {
	dir := t.TempDir()
	s := start(t, func(c *server.Config) { c.UpdateLog, c.ServerID = dir, 1 })
	c := s.dial()
	status, _ := c.get("/rpc/set?key=a&value=1")
	require.Equal(t, 200, status)

	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	require.NoError(t, err)
	defer full.Close()
	replaced := 0
	for _, fd := range descriptorsOf(t, ".ulog") {
		require.NoError(t, syscall.Dup3(int(full.Fd()), fd, syscall.O_CLOEXEC))
		replaced++
	}
	require.Positive(t, replaced)

	c.send("GET /rpc/set?key=a&value=2 HTTP/1.1\r\n\r\n")
	c.requireEOF()   // and no acknowledgement
	code := s.wait() // the server stops by itself
	s.exit <- code
	require.Equal(t, 1, code)
	require.True(t, slices.ContainsFunc(s.log.lines(), func(line string) bool {
		return strings.Contains(line, "[ERROR]: no update is acknowledged any more") && strings.Contains(line, "no space left")
	}), s.log.lines())
}

// descriptorsOf returns the open files of this process whose names have a suffix.
func descriptorsOf(t *testing.T, suffix string) []int {
	t.Helper()
	var fds []int
	for fd := range 1000 {
		link, err := os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(fd)))
		if err == nil && strings.HasSuffix(link, suffix) {
			fds = append(fds, fd)
		}
	}
	return fds
}
