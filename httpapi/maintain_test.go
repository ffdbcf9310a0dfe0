package httpapi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/httpapi"
)

func TestSynchronizeRunsTheCommand(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	script := "#!/bin/sh\necho \"$1|$2|$#\" > " + out + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go od"), []byte(script), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad"), []byte("#!/bin/sh\nexit 3\n"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "noexec"), []byte(script), 0o644))
	s := newServerWith(t, db.Options{}, httpapi.Options{CmdDir: dir}, `:#type=%`)
	c := s.dial(t)
	c.ok("synchronize", "hard", "", "command", "go od")
	got, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Regexp(t, `^:\|\d{20}\|2\n$`, string(got))
	c.ok("synchronize", "command", "")
	for _, command := range []string{"bad", "noexec", "missing", ".", "..", "../good", "a/b", `"; rm x`} {
		status, body := c.call("synchronize", "command", command)
		require.Equal(t, "500", status, command)
		require.Equal(t, "ERROR\tDB: 8: logical inconsistency: postprocessing failed\n", body, command)
	}
	require.NoError(t, c.conn.Close())
	s.conns.Wait()
	log := s.log.String()
	require.Contains(t, log, `msg="executing: go od \":\""`)
	require.Contains(t, log, `level=ERROR msg="execution failed: bad \":\""`)
	require.Contains(t, log, `level=INFO msg="invalid command name: a/b"`)
}

func TestClearAndVacuum(t *testing.T) {
	c := newServer(t).dial(t)
	c.ok("set", "key", "a", "value", "1", "xt", "-1")
	c.ok("set", "key", "b", "value", "1")
	c.ok("vacuum")
	require.Equal(t, "1", table(c.ok("status"))["count"])
	c.ok("clear")
	require.Equal(t, "0", table(c.ok("status"))["count"])
}

func TestCompact(t *testing.T) {
	c := newServer(t, filepath.Join(t.TempDir(), "a.kct"), ":").dial(t)
	c.ok("set", "key", "a", "value", "1")
	require.Equal(t, "running\t0\n", c.ok("compact", "look", "", "wait", "100"), "none is begun")
	rows := table(c.ok("compact", "wait", "100"))
	require.Equal(t, "0", rows["running"])
	require.Contains(t, rows, "before")
	require.Contains(t, rows, "after")
	require.Contains(t, table(c.ok("status"))["compaction"], "done before=")
	require.Equal(t, "", c.ok("compact", "abort", ""), "there is none")
	require.Equal(t, rows, table(c.ok("compact", "look", "", "wait", "-1")))
	for _, how := range []string{"wait", "look", "abort"} {
		status, body := c.call("compact", "DB", "1", how, "")
		require.Equal(t, "500", status)
		require.Equal(t, "ERROR\tDB: 2: invalid operation: only the file of a database on disk can be compacted\n", body)
	}
	require.Equal(t, "1", table(c.ok("status"))["count"])
}

func TestUpdateLogFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ul")
	c := newServerWith(t, db.Options{LogDir: dir, SID: 7}, httpapi.Options{}).dial(t)
	c.ok("set", "key", "a", "value", "1")
	body := c.ok("ulog_list")
	require.Equal(t, 1, strings.Count(body, "\n"))
	require.Regexp(t, `^/.*/ul/0000000001\.ulog\t\d+:\d{19}\n$`, body)
	for _, rows := range [][]string{nil, {"ts", "now"}, {"ts", "abc"}} {
		c.ok("ulog_remove", rows...)
		require.Equal(t, 1, strings.Count(c.ok("ulog_list"), "\n"), "the newest file stays")
	}
}
