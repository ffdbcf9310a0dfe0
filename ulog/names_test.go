package ulog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A number is that of a database from the stamp on at which it got the database's name.
func TestNamesOfDatabases(t *testing.T) {
	dir := t.TempDir()
	open := func(names ...string) (*Log, []Renamed) {
		l := mustOpen(t, dir, Options{})
		changed, err := l.NameDatabases(names)
		require.NoError(t, err)
		return l, changed
	}
	l, changed := open("a", "b")
	require.Empty(t, changed)
	require.Zero(t, l.NamedSince(0))
	mustCommit(t, l, "x")
	require.NoError(t, l.Close())

	l, changed = open("a", "b", "c")
	require.Empty(t, changed)
	require.Zero(t, l.NamedSince(1))
	require.Zero(t, l.NamedSince(2), "nobody has had the number")
	second := mustCommit(t, l, "y")
	require.NoError(t, l.Close())

	l, changed = open("b")
	require.Equal(t, []Renamed{{0, "a", "b", true}}, changed)
	require.Equal(t, second, l.NamedSince(0))
	third := mustCommit(t, l, "z")
	require.NoError(t, l.Close())

	l, changed = open("a", "b", "d")
	require.Equal(t, []Renamed{{0, "b", "a", true}, {2, "c", "d", false}}, changed)
	require.Equal(t, third, l.NamedSince(0), "what came meanwhile is not of a")
	require.Zero(t, l.NamedSince(1), "nothing can have come meanwhile")
	require.Equal(t, third, l.NamedSince(2))
	require.NoError(t, l.Close())

	name := filepath.Join(dir, namesName)
	require.NoError(t, os.WriteFile(name, []byte("["), 0o600))
	l = mustOpen(t, dir, Options{})
	_, err := l.NameDatabases([]string{"a"})
	require.ErrorContains(t, err, name)
	require.NoError(t, l.Close())
	require.NoError(t, os.Remove(name))
	l, changed = open("a")
	require.Empty(t, changed)
	require.Equal(t, third, l.NamedSince(0), "a log of before these notes")
	require.NoError(t, l.Close())
}
