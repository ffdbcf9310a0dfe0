package crash

import (
	"errors"
	"io"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// xtLen is the length of the expiration time before a value in the log.
const xtLen = 5

// verifyLog reads the whole update log: its stamps grow, and it tells how the databases came to be
// what they are.
func (v *victim) verifyLog(t *testing.T) {
	t.Helper()
	r, err := ulog.OpenReader(vfs.OS{}, v.logDir, 0, ulog.ReaderOptions{Report: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	defer r.Close()
	states := make([]map[string]string, len(v.opts.DBs))
	for i := range states {
		states[i] = map[string]string{}
	}
	var last ulog.Stamp
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.Greater(t, e.Stamp, last, "stamps in the log")
		last = e.Stamp
		u, err := ulog.ParseMessage(e.Message)
		require.NoError(t, err)
		require.Less(t, int(u.DBID), len(states))
		redo(t, states[u.DBID], &u)
	}
	for _, w := range v.workers {
		want := maps.Clone(states[w.dbidx])
		maps.DeleteFunc(want, func(key, _ string) bool { return prefixOf(key) != w.prefix })
		require.NoError(t, w.verify(want), "client %s, in the log", w.prefix)
	}
}

func redo(t *testing.T, state map[string]string, u *ulog.Update) {
	t.Helper()
	switch u.Op {
	case ulog.OpSet:
		require.GreaterOrEqual(t, len(u.Value), xtLen)
		state[string(u.Key)] = string(u.Value[xtLen:])
	case ulog.OpRemove:
		delete(state, string(u.Key))
	case ulog.OpClear:
		clear(state)
	default:
		t.Fatalf("unknown operation %#x in the log", u.Op)
	}
}
