package compat

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
	"gotycoon/snapshot"
)

// fullOptions replays a life with every kind of service, and looks for the snapshots of its end.
func (l *life) fullOptions(t *testing.T) (difference string) {
	require.NoError(t, os.Mkdir(l.path("bgs"), 0o755))
	require.NoError(t, os.WriteFile(l.path("t.lua"), []byte("kt = __kyototycoon__\n"), 0o600))
	l.moveMemcache(strconv.Itoa(freeport.Take(t)))
	l.server = ktproc.Start(t, l.opts)
	awaitLines(t, l.server.Output, listening, 2)
	l.dial(t).ask(t, post("set", "key\ta\nvalue\tb\n"))
	awaitLines(t, l.server.Output, deferred, 1)
	l.server.Signal(t, syscall.SIGTERM)
	require.Equal(t, l.ExitCode, l.server.ExitCode(t))
	for _, name := range l.SnapshotFiles {
		require.FileExists(t, filepath.Join(l.path("bgs"), name))
	}
	return compareLines(deferredFirst(l.Output), deferredFirst(l.mask(l.server.Output())))
}

const deferred = `replication was deferred: host=127.0.0.1 port=9`

// deferredFirst moves the follower's line to the front: the moment of this line differs from run to
// run.
func deferredFirst(lines []string) []string {
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, deferred) })
	if i < 0 {
		return lines
	}
	return slices.Concat(lines[i:i+1], lines[:i], lines[i+1:])
}

// moveMemcache puts the recorded port of memcached's protocol, which others may use, elsewhere.
func (l *life) moveMemcache(port string) {
	const recorded = "20198"
	l.opts.Args = slices.Clone(l.Args)
	for _, lines := range [][]string{l.opts.Args, l.Output} {
		for i := range lines {
			lines[i] = strings.ReplaceAll(lines[i], recorded, port)
		}
	}
}

// loadSnapshots replays a start that loads snapshots. They are like the snapshots that the previous
// case has left.
func (l *life) loadSnapshots(t *testing.T) (difference string) {
	require.NoError(t, os.Mkdir(l.path("bgs"), 0o755))
	l.leaveSnapshot(t, 0, snapshot.Header{Stamp: 1, Count: 1, Size: 400128}, "a", "b")
	l.leaveSnapshot(t, 1, snapshot.Header{Stamp: 1, Size: 6297720})
	for i := range l.Output {
		l.Output[i] = strings.ReplaceAll(l.Output[i], "ts=@NS@", "ts=1")
	}
	l.server = ktproc.Start(t, l.opts)
	response := l.dial(t).ask(t, post("get", "key\ta\n"))
	require.True(t, strings.HasSuffix(response, l.GetReply), response)
	l.server.Signal(t, syscall.SIGKILL)
	return l.exit(t)
}

// leaveSnapshot writes a snapshot with records that do not expire.
func (l *life) leaveSnapshot(t *testing.T, index int, h snapshot.Header, keysAndValues ...string) {
	t.Helper()
	f, err := os.Create(filepath.Join(l.path("bgs"), snapshot.Name(index)))
	require.NoError(t, err)
	defer f.Close()
	w, err := snapshot.NewWriter(f, h)
	require.NoError(t, err)
	for pair := range slices.Chunk(keysAndValues, 2) {
		require.NoError(t, w.Add([]byte(pair[0]), []byte("\xff\xff\xff\xff\xff"+pair[1])))
	}
	require.NoError(t, w.Close())
}
