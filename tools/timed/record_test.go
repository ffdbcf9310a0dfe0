package timed_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// database creates a file with records, given as keys and values in turn.
func database(t *testing.T, name string, records ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	succeed(t, "create", path)
	for i := 0; i < len(records); i += 2 {
		succeed(t, "set", path, records[i], records[i+1])
	}
	return path
}

func TestSet(t *testing.T) {
	path := database(t, "a.kct", "k", "v")
	require.Equal(t, "kttimedmgr: DB::add failed: "+path+": 6: record duplication: record duplication\n", fail(t, "set", "-add", path, "k", "x"))
	require.Equal(t, "kttimedmgr: DB::replace failed: "+path+": 7: no record: no record\n", fail(t, "set", "-rep", path, "n", "x"))
	succeed(t, "set", "-app", path, "k", "+")
	require.Equal(t, "v+\n", succeed(t, "get", path, "k"))
	require.Equal(t, "7\n", succeed(t, "set", "-inci", path, "n", "7"))
	require.Equal(t, "5\n", succeed(t, "set", "-inci", path, "n", "-2"))
	require.Equal(t, "0.250000\n", succeed(t, "set", "-incd", path, "d", "0.25"))
	require.Contains(t, fail(t, "set", "-incd", path, "k", "1"), "8: logical inconsistency")
	succeed(t, "set", "-sx", "-xt", "-4102444800", path, "00 01", "0a")
	require.Equal(t, "0A\t4102444800\n", succeed(t, "get", "-sx", "-px", "-pt", path, "0001"))
	require.Equal(t, "v+", succeed(t, "get", "-rm", "-pz", path, "k"))
	require.Contains(t, fail(t, "get", path, "k"), "DB::get failed")
	require.Contains(t, fail(t, "remove", path, "k"), "DB::remove failed")
}

func TestList(t *testing.T) {
	path := database(t, "a.kct", "a", "1", "b", "2", "c", "3")
	require.Equal(t, "a\t1\nb\t2\nc\t3\n", succeed(t, "list", "-pv", path))
	require.Equal(t, "c\nb\na\n", succeed(t, "list", "-des", path))
	require.Equal(t, "b\nc\n", succeed(t, "list", path, "aa"))
	require.Equal(t, "a\n", succeed(t, "list", "-des", path, "aa"))
	require.Equal(t, "61\t1099511627775\n", succeed(t, "list", "-max", "1", "-px", "-pt", path))
	require.Empty(t, succeed(t, "list", "-max", "0", path))
	require.Empty(t, succeed(t, "list", path, "z"))
	require.Equal(t, "a\nb\n", succeed(t, "list", "-rm", "-max", "2", path))
	require.Equal(t, "c\n", succeed(t, "list", path))
	hash := database(t, "a.kch", "a", "1")
	require.Equal(t, "kttimedmgr: Cursor::jump failed: "+hash+": 1: not implemented: not implemented\n", fail(t, "list", "-des", hash))
}

func TestPersistent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.kch")
	succeed(t, "create", path+"#ktopts=p")
	succeed(t, "set", "-xt", "-1", path, "k", "v")
	require.Equal(t, "v\t9223372036854775807\n", succeed(t, "get", "-pt", path, "k"))
	require.Contains(t, succeed(t, "inform", "-st", path), "\nktopts: 2\n")
	succeed(t, "create", "-otr", path)
	require.Contains(t, succeed(t, "inform", "-st", path), "\nktopts: 0\n")
}

func TestExpired(t *testing.T) {
	path := database(t, "a.kct", "k", "v")
	succeed(t, "set", "-xt", "-1", path, "dead", "x")
	require.Equal(t, "k\n", succeed(t, "list", path))
	require.Contains(t, succeed(t, "inform", path), "count: 2\n")
	require.Equal(t, " (end)\n1 records were checked successfully\n", succeed(t, "check", path))
	succeed(t, "vacuum", path)
	require.Contains(t, succeed(t, "inform", path), "count: 1\n")
	succeed(t, "clear", path)
	require.Contains(t, succeed(t, "inform", path), "count: 0\n")
}

func TestWhatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	kyoto := filepath.Join(dir, "kc.kch")
	require.NoError(t, os.WriteFile(kyoto, []byte("KC\nand more"), 0o600))
	for _, args := range [][]string{
		{"get", kyoto, "k"}, {"set", kyoto, "k", "v"}, {"create", kyoto}, {"create", "-otr", kyoto}, {"merge", kyoto, ":"}, {"inform", kyoto},
	} {
		require.Contains(t, fail(t, args...), "Kyoto Cabinet database, which is left untouched", "%v", args)
	}
	missing := filepath.Join(dir, "no.kct")
	for _, args := range [][]string{{"get", missing, "k"}, {"set", missing, "k", "v"}, {"remove", missing, "k"}, {"clear", missing}, {"vacuum", missing}} {
		require.Regexp(t, "^kttimedmgr: DB::open failed: : 3: no repository: open failed \\(file not found\\)\nkttimedmgr: .*: there is no such file or directory; create makes", fail(t, args...))
		require.NoFileExists(t, missing)
	}
	require.Equal(t, "kttimedmgr: DB::open failed: : 2: invalid operation: unknown database type\n"+
		"kttimedmgr: the name of a database file ends in .kct, .kch, .kcd or .kcf\n", fail(t, "inform", "noext"))
	require.Contains(t, fail(t, "set", "-ulog", kyoto, database(t, "a.kct"), "k", "v"), "UpdateLogger::open failed: "+kyoto)
}

// TestUpdatesAreLogged looks at the log of -ulog.
func TestUpdatesAreLogged(t *testing.T) {
	path, log := database(t, "a.kct"), filepath.Join(t.TempDir(), "ulog")
	common := []string{"-ulog", log, "-ulim", "1m", "-sid", "3", "-dbid", "4", path}
	succeed(t, append([]string{"set"}, append(common, "k", "v")...)...)
	succeed(t, append([]string{"get"}, append(common, "k")...)...)
	succeed(t, append([]string{"remove"}, append(common, "k")...)...)
	succeed(t, append([]string{"clear"}, common...)...)

	r, err := ulog.OpenReader(vfs.OS{}, log, 0, ulog.ReaderOptions{})
	require.NoError(t, err)
	var ops []ulog.Op
	for e, err := r.Next(); err == nil; e, err = r.Next() {
		u, err := ulog.ParseMessage(e.Message)
		require.NoError(t, err)
		require.Equal(t, uint16(3), u.SID)
		require.Equal(t, uint16(4), u.DBID)
		ops = append(ops, u.Op)
	}
	require.NoError(t, r.Close())
	require.Equal(t, []ulog.Op{ulog.OpSet, ulog.OpRemove, ulog.OpClear}, ops)
}
