package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/server"
)

// "config check" says that a start would be refused because acknowledged updates would be passed over.
func TestConfigurationsThatPassOverUpdatesAreWrong(t *testing.T) {
	dir, killed := t.TempDir(), filepath.Join(t.TempDir(), "killed")
	c, err := db.Open([]string{filepath.Join(dir, "a.kct")}, db.Options{LogDir: filepath.Join(dir, "ulog"), SID: 1})
	require.NoError(t, err)
	require.NoError(t, c.DB(0).Set(nil, []byte("k"), []byte("v"), db.XT(db.MaxXT)))
	require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))
	running := server.DefaultConfig()
	running.Databases, running.UpdateLog, running.ServerID = []string{filepath.Join(dir, "a.kct")}, filepath.Join(dir, "ulog"), 1
	wrong, notes := server.Examine(running)
	require.Empty(t, wrong)
	require.Contains(t, strings.Join(notes, "\n"), "ulog: in use")
	require.Contains(t, strings.Join(notes, "\n"), "a.kct: in use")
	require.NoError(t, c.Close())

	cfg := server.DefaultConfig()
	cfg.Databases = []string{filepath.Join(killed, "a.kct")}
	wrong, _ = server.Examine(cfg)
	require.Len(t, wrong, 1)
	require.ErrorContains(t, wrong[0], "acknowledged updates: 1,")
	cfg.UpdateLog, cfg.ServerID = filepath.Join(killed, "ulog"), 1
	wrong, _ = server.Examine(cfg)
	require.Empty(t, wrong)
	cfg.UpdateLog, cfg.AsIs = "", true
	wrong, _ = server.Examine(cfg)
	require.Empty(t, wrong)
}
