package server

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/pg/pgtest"
)

// A start that has waited for its engine in vain says why the engine was not to be had, and not
// only that the time was up.
func TestAStartSaysWhatItWaitedFor(t *testing.T) {
	c := DefaultConfig()
	c.Plugins.Database, c.Engine.Wait = "postgres://kt:geheim@127.0.0.1:1/kt", 2*time.Second
	_, err := c.openEngine(logger{slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "connection refused")
	require.ErrorContains(t, err, "whether PostgreSQL runs")
	require.ErrorContains(t, err, "-engine-wait")
	require.NotContains(t, err.Error(), "deadline")
	require.NotContains(t, err.Error(), "geheim")
}

// What does not go together with an engine is found before anything else, so that nothing is made
// for it.
func TestOptionsBesideAnEngine(t *testing.T) {
	snapshots, file := filepath.Join(t.TempDir(), "snapshots"), filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for text, change := range map[string]func(c *Config){
		"-bgs needs databases":                        func(c *Config) { c.Snapshots.Dir = snapshots },
		"-ulog needs databases":                       func(c *Config) { c.UpdateLog = "log" },
		"-mhost needs databases":                      func(c *Config) { c.MasterHost = "h" },
		"-engine-lanes: must be from 1 to 1000":       func(c *Config) { c.Engine.Lanes = 1 << 32 },
		"-engine-readers: must be from 1 to 1000":     func(c *Config) { c.Engine.Readers = 1001 },
		"-engine-timeout: must be above 0, or absent": func(c *Config) { c.Engine.Timeout = -1 },
		"-engine-timeout: must be at least 100ms":     func(c *Config) { c.Engine.Timeout = time.Millisecond },
		file + " is a file, and must be a directory":  func(c *Config) { c.Engine.Copies = file },
	} {
		c := DefaultConfig()
		c.Plugins.Database = "postgres://kt@127.0.0.1:1/kt"
		change(&c)
		require.ErrorContains(t, c.check(), text)
		require.NoDirExists(t, snapshots)
		wrong, _, _ := Examine(c)
		require.ErrorContains(t, wrong[0], text)
	}
}

// A database to which everybody may connect is a matter for "config check", and for the log of a
// start.
func TestADatabaseForEverybodyIsTold(t *testing.T) {
	p := pgtest.Own(t)
	c := DefaultConfig()
	c.Plugins.Database, c.Databases, c.Port = p.URL("postgres"), nil, 0
	_, err := pg.Init(t.Context(), c.Plugins.Database, pg.Setup{SID: 1, Databases: []string{"a"}})
	require.NoError(t, err)
	told := func() string {
		wrong, warnings, _ := Examine(c)
		require.Empty(t, wrong)
		var log bytes.Buffer
		cfg := c
		s, err := cfg.openEngine(logger{slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.Equal(t, len(warnings), strings.Count(log.String(), "warning: the engine"))
		return strings.Join(warnings, "\n")
	}
	require.Contains(t, told(), "every role of this PostgreSQL may connect")
	require.NoError(t, p.Run("postgres", "REVOKE ALL ON DATABASE postgres FROM PUBLIC"))
	require.Empty(t, told())
	require.NoError(t, p.Run("postgres", "ALTER ROLE postgres SET default_transaction_read_only = on"))
	wrong, _, notes := Examine(c)
	require.ErrorContains(t, wrong[0], "default_transaction_read_only is on")
	require.Contains(t, notes, "connection to the engine: not encrypted")
}

// What is no URL, or has a password that is not written as one must be, is refused without a word
// of it.
func TestURLsThatAreNone(t *testing.T) {
	for url, why := range map[string]string{
		"host=h password=GEHEIM dbname=kt":        "an engine has a URL",
		"password=GEHEIM://":                      "an engine has a URL",
		"GEHEIM@h://":                             "is no URL of an engine",
		"postgresql://kt:GE@HEIM@127.0.0.1:25/kt": "write %40",
		"postgres://kt:12/GEHEIM@127.0.0.1:25/kt": "write %40",
	} {
		c := DefaultConfig()
		c.Plugins.Database = url
		require.ErrorContains(t, c.check(), why)
		wrong, warnings, notes := Examine(c)
		require.ErrorContains(t, wrong[0], why)
		require.NotRegexp(t, "GE|HEIM", fmt.Sprint(wrong, warnings, notes))
	}
}

// The records of an engine are not as safe as files, but as safe as the engine makes them.
func TestDurabilityOfAnEngine(t *testing.T) {
	c := DefaultConfig()
	c.Plugins.Database = "postgres://kt@127.0.0.1:1/kt"
	require.Equal(t, "durability: of records, the engine's", durability(&c))
	c.Services.LockPort = 1
	require.Contains(t, durability(&c), "durability: of records, the engine's; acknowledged updates of files and logs survive")
}

// The password of an engine's URL is shown nowhere, however the URL is written.
func TestRedactedURL(t *testing.T) {
	for url, shown := range map[string]string{
		"postgres://kt@db1,db2/kt":                             "postgres://kt@db1,db2/kt",
		"postgres://kt:geheim@db1:5432,db2/kt?sslmode=require": "postgres://kt@db1:5432,db2/kt",
		"postgres://db/kt?user=kt&password=geheim":             "postgres://db/kt",
		"postgres://db/kt?password=gehe;im":                    "postgres://db/kt",
		"postgres://db/kt?password=geheim%zz":                  "postgres://db/kt",
		"postgres://kt:1/geheim@h/db":                          "postgres://…",
		"postgres://kt:1#geheim@h/db":                          "postgres://…",
		"postgres://kt:1?geheim@h/db":                          "postgres://…",
		"postgres://kt:ge%heim@h/db":                           "postgres://kt@h/db",
		"postgres://kt:ge@heim@h/db":                           "postgres://…",
		"password=geheim://":                                   "…",
		"host=h password=geheim dbname=kt":                     "…",
		"/usr/lib/ktplugdbmap.so":                              "/usr/lib/ktplugdbmap.so",
	} {
		require.Equal(t, shown, RedactedURL(url), url)
		require.NotContains(t, RedactedURL(url), "geheim")
	}
}

// Who may ask /readyz need not know where the engine is, nor who the server is there. The log, the
// report and the console say it.
func TestProbesDoNotNameTheEngine(t *testing.T) {
	s := &sharedEngine{name: "postgres://kt@127.0.0.1:25432/accounts"}
	w := watchAlarms()
	h := &health{alarms: w.alarms}
	deaf := errors.New("connecting to user=kt host=127.0.0.1:25432: refused")
	for text, one := range map[string]alarm{
		"the engine does not answer, requests are refused: look":                           s.silent(gather.Stats{Away: true})[0],
		"the engine has not answered any update for some seconds: look":                    s.silent(gather.Stats{Silent: engineSilent})[0],
		"does not answer, requests are refused: the log, the report and the console say":   s.silent(gather.Stats{Away: true, Failure: deaf})[0],
		"are not woken by signals that are sent at other servers of the engine. The log, ": deafAlarm(deaf),
	} {
		w.sources = []func(time.Time) []alarm{func(time.Time) []alarm { return []alarm{one} }}
		w.look(time.Now().Add(-time.Minute))
		said := append(h.ready(), h.notes()...)
		require.Len(t, said, 1)
		require.Contains(t, said[0], text)
		require.Contains(t, said[0], " (since 20")
		for _, name := range []string{"kt@", "user=", "127.0.0.1", "25432", "accounts"} {
			require.NotContains(t, said[0], name)
		}
		rows := map[string]string{}
		w.report(rows)
		require.Contains(t, rows["alarm_"+one.name], "25432")
		require.Contains(t, w.shown()[0].Text, "25432")
		require.Contains(t, w.log.String(), "25432")
		w.sources = nil
		w.look(time.Now())
		w.log.Reset()
	}
	require.Empty(t, s.silent(gather.Stats{Silent: engineSilent - 1}))
	require.Contains(t, s.silent(gather.Stats{Silent: engineSilent, Failure: deaf})[0].text, "127.0.0.1:25432: refused")
}

// The admin listener shows how the server was started, but for passwords.
func TestTheCommandLineHasNoPasswords(t *testing.T) {
	args := []string{
		"ktserver", "-port", "1980", "-pldb", "postgres://kt:geheim@db/kt?application_name=a", "-pldb=postgres://kt:geheim@db/kt", "--pldb=postgres://db/kt?password=geheim",
		"-pldb=postgres://kt:1/geheim@h/db", " postgres://kt:geheim@db/kt", "-dsn=x=postgres://u:geheim@h/d", "casket.kct#ktopts=p", "",
		"-cluster-secret", "geheim", "-cluster-secret=geheim", "--cluster-secret", "-geheim=", "-token-file", "file",
	}
	before := slices.Clone(args)
	require.Equal(t, []string{
		"ktserver", "-port", "1980", "-pldb", "postgres://kt@db/kt", "-pldb=postgres://kt@db/kt", "--pldb=postgres://db/kt",
		"-pldb=postgres://…", "…", "-dsn=…", "casket.kct#ktopts=p", "",
		"-cluster-secret", "…", "-cluster-secret=…", "--cluster-secret", "…", "-token-file", "file",
	}, commandLine(args))
	require.Equal(t, before, args)
	require.Empty(t, commandLine(nil))
}
