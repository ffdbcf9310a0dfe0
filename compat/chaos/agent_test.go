package chaos

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

// agent is "ktremotemgr slave -uw", whose output is a file.
type agent struct {
	out string
}

func startAgent(t *testing.T, port int) *agent {
	t.Helper()
	dir := t.TempDir()
	a := &agent{out: filepath.Join(dir, "out.tsv")}
	out, err := os.Create(a.out)
	require.NoError(t, err)
	defer out.Close()
	complaints, err := os.Create(filepath.Join(dir, "err"))
	require.NoError(t, err)
	defer complaints.Close()
	cmd := exec.Command(ktproc.Build(t, "ktremotemgr"), "slave", "-host", "127.0.0.1", "-port", strconv.Itoa(port), "-uw")
	cmd.Stdout, cmd.Stderr = out, complaints
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		if text, err := os.ReadFile(complaints.Name()); err == nil && t.Failed() {
			t.Logf("the agent said: %s", tail(string(text)))
		}
	})
	return a
}

// awaitLine waits until the agent has printed something. An agent that is cut off before its first
// connection is there ends, as the original's does.
func (a *agent) awaitLine(t *testing.T) {
	t.Helper()
	require.True(t, eventually(func() bool {
		info, err := os.Stat(a.out)
		return err == nil && info.Size() > 0
	}), "the agent prints nothing")
}

// check replays the printed lines. No line may have come twice or out of order, and the lines must
// lead to the contents.
func (a *agent) check(t *testing.T, want map[string]string) {
	t.Helper()
	var got map[string]string
	require.True(t, eventually(func() bool {
		got = a.replay(t)
		return maps.Equal(want, got)
	}), "want %d records, got %d", len(want), len(got))
}

func (a *agent) replay(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(a.out)
	require.NoError(t, err)
	defer f.Close()
	contents, last := map[string]string{}, uint64(0)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		cols := strings.Split(lines.Text(), "\t")
		stamp, err := strconv.ParseUint(cols[0], 10, 64)
		if err != nil || len(cols) < 5 || cols[3] == "set" && len(cols) < 6 {
			break // a line that is being written
		}
		require.Greater(t, stamp, last, "a change came twice, or late")
		last = stamp
		key := text(t, cols[4])
		if cols[3] == "remove" {
			delete(contents, key)
			continue
		}
		contents[key] = record(text(t, cols[5]))
	}
	return contents
}

func text(t *testing.T, base64Text string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(base64Text)
	require.NoError(t, err)
	return string(b)
}

// record gives a stored value, with its five bytes of expiration time, the form of contents.
func record(stored string) string {
	seconds := uint64(0)
	for _, b := range []byte(stored[:5]) {
		seconds = seconds<<8 | uint64(b)
	}
	at := time.Time{}
	if seconds < 1<<40-1 {
		at = time.Unix(int64(seconds), 0)
	}
	return fmt.Sprint(stored[5:], at.UTC().Format(" 2006-01-02T15:04:05"))
}
