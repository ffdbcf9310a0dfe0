package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/server"
)

// "config check" says that a start would be refused, because it would pass over acknowledged
// updates.
func TestConfigurationsThatPassOverUpdatesAreWrong(t *testing.T) {
	dir, killed := t.TempDir(), filepath.Join(t.TempDir(), "killed")
	c, err := db.Open([]string{filepath.Join(dir, "a.kct")}, db.Options{LogDir: filepath.Join(dir, "ulog"), SID: 1})
	require.NoError(t, err)
	require.NoError(t, c.DB(0).Set(nil, []byte("k"), []byte("v"), record.XT(record.MaxXT)))
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

// Mistakes in values that only the start reads are found beforehand, too.
func TestNamesThatMeanNothingAreWrong(t *testing.T) {
	dir := t.TempDir()
	rules, file := filepath.Join(dir, "access"), filepath.Join(dir, "a.kct")
	require.NoError(t, os.WriteFile(rules, []byte("let everybody in\n"), 0o600))
	for text, change := range map[string]func(*server.Config){
		"access: line 1: a line is":      func(c *server.Config) { c.Access.Path = rules },
		"-admin 1990: write HOST:PORT":   func(c *server.Config) { c.Admin.Addr = "1990" },
		"-plsv: no.so is no plug-in":     func(c *server.Config) { c.Plugins.Server = "no.so" },
		"-pldb: no.so is no engine":      func(c *server.Config) { c.Plugins.Database = "no.so" },
		"a.kct: the file is given twice": func(c *server.Config) { c.Databases = []string{file, dir + "/./a.kct"} },
		"a.kct: the file is given":       func(c *server.Config) { c.Databases, c.Services.Database = []string{file}, file },
	} {
		cfg := server.DefaultConfig()
		change(&cfg)
		wrong, _ := server.Examine(cfg)
		require.Len(t, wrong, 1, text)
		require.ErrorContains(t, wrong[0], text)
	}
	cfg := server.DefaultConfig()
	cfg.Plugins.Server, cfg.Plugins.Database, cfg.Admin.Addr = "/lib/ktplugservmemc.so", "/lib/ktplugdbvoid.so", "localhost:1990"
	cfg.Databases = []string{"*", "*"}
	wrong, _ := server.Examine(cfg)
	require.Empty(t, wrong)
}
