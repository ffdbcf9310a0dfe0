package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/internal/tlsfiles/testca"
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
	wrong, _, notes := server.Examine(running)
	require.Empty(t, wrong)
	require.Contains(t, strings.Join(notes, "\n"), "ulog: in use")
	require.Contains(t, strings.Join(notes, "\n"), "a.kct: in use")
	require.NoError(t, c.Close())

	cfg := server.DefaultConfig()
	cfg.Databases = []string{filepath.Join(killed, "a.kct")}
	wrong, _, _ = server.Examine(cfg)
	require.Len(t, wrong, 1)
	require.ErrorContains(t, wrong[0], "acknowledged updates: 1,")
	cfg.UpdateLog, cfg.ServerID = filepath.Join(killed, "ulog"), 1
	wrong, _, _ = server.Examine(cfg)
	require.Empty(t, wrong)
	cfg.UpdateLog, cfg.AsIs = "", true
	wrong, _, _ = server.Examine(cfg)
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
		wrong, _, _ := server.Examine(cfg)
		require.Len(t, wrong, 1, text)
		require.ErrorContains(t, wrong[0], text)
	}
	cfg := server.DefaultConfig()
	cfg.Plugins.Server, cfg.Plugins.Database, cfg.Admin.Addr = "/lib/ktplugservmemc.so", "/lib/ktplugdbvoid.so", "localhost:1990"
	cfg.Databases = []string{"*", "*"}
	wrong, _, _ := server.Examine(cfg)
	require.Empty(t, wrong)
}

// Whatever a start tries is tried: what would end it is wrong, and what it would go on with, though
// hardly as it is meant, is a warning.
func TestAConfigurationIsTried(t *testing.T) {
	dir, ca := t.TempDir(), authority(t)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	snapshots := filepath.Join(dir, "snapshots")
	require.NoError(t, os.Mkdir(snapshots, 0o700))
	file("snapshots/00000000.ktss", "no snapshot")
	_, err := ca.Issue(testca.Spec{Name: "old", Hosts: []string{"localhost"}, Expired: true})
	require.NoError(t, err)
	for text, row := range map[string]struct {
		change  func(*server.Config)
		warning bool
	}{
		"database *#capsizes=1g: #capsizes=1g: there is no such parameter": {func(c *server.Config) { c.Databases = []string{"*#capsizes=1g"} }, true},
		"broken.lua:2: syntax error": {func(c *server.Config) {
			c.Script.Path = file("broken.lua", "function a()\nend end\n")
		}, true},
		`-bgsc: there is no compressor "zip"`: {func(c *server.Config) { c.Snapshots.Compressor = "zip" }, true},
		`-memcache-opts fx: there are no options "x": f keeps flags`: {func(c *server.Config) {
			c.Plugins.MemcachePort, c.Plugins.MemcacheOptions = 21211, "fx"
		}, true},
		`-plex: there is no "prot": host, port`: {func(c *server.Config) {
			c.Plugins.Server, c.Plugins.Expr = "ktplugservmemc.so", "prot=21211"
		}, true},
		"-plex has no effect without -plsv":        {func(c *server.Config) { c.Plugins.Expr = "port=1" }, true},
		"-ash has no effect without -asi":          {func(c *server.Config) { c.AutoSyncHard = true }, true},
		"-scrmem has no effect without -scr":       {func(c *server.Config) { c.Script.Memory = 1 << 20 }, true},
		"-th 65: the server takes no more than 64": {func(c *server.Config) { c.Threads = 65 }, true},
		"-copy-limit: a number below 0 counts as":  {func(c *server.Config) { c.Replication.CopyLimit = -1 }, true},
		"-ord with -mhost: a server that opens its": {func(c *server.Config) {
			c.ReadOnly, c.MasterHost, c.ServerID, c.RTSPath = true, "127.0.0.1", 1, filepath.Join(dir, "rts")
		}, true},
		"-memory: 1099511627776 MiB": {func(c *server.Config) { c.Limits.Memory = 1 << 60 }, true},
		"-dmn without -log FILE":     {func(c *server.Config) { c.Daemon, c.PIDPath = true, "/pid" }, true},
		"-mhost: the address of nowhere.invalid is not found": {func(c *server.Config) {
			c.MasterHost, c.ServerID, c.RTSPath = "nowhere.invalid", 1, filepath.Join(dir, "rts")
		}, true},
		"old.pem has expired on": {func(c *server.Config) { c.TLS.Cert, c.TLS.Key = ca.Path("old.pem"), ca.Path("old.key") }, true},

		"-tout: it is above 0": {func(c *server.Config) { c.Timeout = 0 }, false},
		"-mport 70000: a port is at most": {func(c *server.Config) {
			c.MasterHost, c.MasterPort, c.ServerID, c.RTSPath = "127.0.0.1", 70000, 1, filepath.Join(dir, "rts")
		}, false},
		"-bgs: " + dir + "/no/bgs cannot be written: there is no directory " + dir + "/no, make it first": {func(c *server.Config) {
			c.Snapshots.Dir = filepath.Join(dir, "no", "bgs")
		}, false},
		"could not apply a snapshot: " + snapshots: {func(c *server.Config) { c.Snapshots.Dir = snapshots }, false},
		"-log: " + dir + " is a directory":         {func(c *server.Config) { c.LogPath = dir }, false},
		"-port 40000: a port is at most 32767":     {func(c *server.Config) { c.Port = 40000 }, false},
		"-admin: ":                                 {func(c *server.Config) { c.Admin.Addr = "192.0.2.1:1990" }, false},
	} {
		cfg := server.DefaultConfig()
		row.change(&cfg)
		wrong, warnings, _ := server.Examine(cfg)
		if row.warning {
			require.Empty(t, wrong, text)
			require.Contains(t, strings.Join(warnings, "\n"), text)
			continue
		}
		require.Len(t, wrong, 1, text)
		require.ErrorContains(t, wrong[0], text)
	}
	cfg := server.DefaultConfig()
	cfg.Snapshots.Dir = filepath.Join(dir, "bgs")
	wrong, _, notes := server.Examine(cfg)
	require.Empty(t, wrong)
	require.Contains(t, strings.Join(notes, "\n"), "-bgs: the directory "+dir+"/bgs is not there: the server makes it at its start")
	require.NoDirExists(t, filepath.Join(dir, "bgs"))
	_, err = os.Stat(filepath.Join(dir, "rts"))
	require.ErrorIs(t, err, os.ErrNotExist, "nothing is made")
}

// A start does not fail for the sake of a value without effect, but says so.
func TestAStartTellsOfDoubts(t *testing.T) {
	s := start(t, func(c *server.Config) { c.Databases, c.AutoSyncHard = []string{"*#pccap=1z"}, true })
	require.Zero(t, s.stop())
	text := strings.Join(s.log.lines(), "\n")
	require.Contains(t, text, "[SYSTEM]: warning: -ash has no effect without -asi\n")
	require.Contains(t, text, `[SYSTEM]: warning: database *#pccap=1z: #pccap=1z: "z" is no unit`)
}
