package httpapi_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/httpapi"
	"gotycoon/ulog"
)

// fakeFollower remembers how it was tuned.
type fakeFollower struct {
	tuned     string
	recopied  int
	position  ulog.Stamp
	following bool
}

// Tune implements httpapi.Follower.
func (f *fakeFollower) AwaitPosition(ulog.Stamp, time.Duration) ulog.Stamp { return 0 }

func (f *fakeFollower) Tune(host string, port int, from *ulog.Stamp, interval *time.Duration) {
	f.tuned = fmt.Sprintf("%q %d", host, port)
	if from != nil {
		f.tuned += fmt.Sprintf(" from %d", *from)
	}
	if interval != nil {
		f.tuned += fmt.Sprintf(" interval %v", *interval)
	}
}

// Position implements httpapi.Follower.
func (f *fakeFollower) Recopy() { f.recopied++ }

func (f *fakeFollower) Position() (at ulog.Stamp, following bool) { return f.position, f.following }

func TestTuneReplication(t *testing.T) {
	f := new(fakeFollower)
	c := newServerWith(t, db.Options{}, httpapi.Options{Follower: f}).dial(t)
	for _, row := range []struct {
		name string
		rows []string
		want string
	}{
		{"nothing given", nil, `"" 1978`},
		{"everything given", []string{"host", "h", "port", "2000", "ts", "123", "iv", "5.5"}, `"h" 2000 from 123 interval 5.5ms`},
		{"now", []string{"host", "h", "ts", "now"}, `"h" 1978 from 1795227592000000000`},
		{"zero", []string{"host", "h", "port", "0", "ts", "0", "iv", "0"}, `"h" 1978 from 0 interval 0s`},
		{"garbage counts as zero", []string{"port", "x", "ts", "x", "iv", "x"}, `"" 1978 from 0 interval 0s`},
		{"below zero counts as absent", []string{"port", "-1", "ts", "-1", "iv", "-1"}, `"" 1978`},
		{"no number", []string{"iv", "nan"}, `"" 1978`},
		{"very long", []string{"iv", "inf"}, `"" 1978 interval 1281023h53m38.427387904s`},
		{"the default interval", []string{"iv", "0.04"}, `"" 1978 interval 40µs`},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Empty(t, c.ok("tune_replication", row.rows...))
			require.Equal(t, row.want, f.tuned)
		})
	}
	require.Zero(t, f.recopied)
	require.Empty(t, c.ok("tune_replication", "host", "h", "copy", "true"))
	require.Equal(t, 1, f.recopied)
	status, body := newServer(t).dial(t).call("tune_replication")
	require.Equal(t, "501", status)
	require.Equal(t, "ERROR\tthe RTS file is not set\n", body)
}

func TestTunePrimary(t *testing.T) {
	f, claims := new(fakeFollower), []bool{}
	var failed error
	c := newServerWith(t, db.Options{}, httpapi.Options{Follower: f, Claim: func(force bool) error {
		claims = append(claims, force)
		return failed
	}}).dial(t)
	require.Empty(t, c.ok("tune_replication", "primary", "true"))
	require.Empty(t, c.ok("tune_replication", "primary", "force"))
	require.Empty(t, f.tuned, "the master stays")
	require.Empty(t, c.ok("tune_replication", "primary", "true", "readonly", "false", "host", "h"))
	require.Equal(t, `"h" 1978`, f.tuned)
	require.Equal(t, []bool{false, true, false}, claims)
	for _, value := range []string{"false", "x", ""} {
		status, _ := c.call("tune_replication", "primary", value)
		require.Equal(t, "400", status, value)
	}
	failed = errors.New("what it has may be old")
	status, body := c.call("tune_replication", "primary", "true", "host", "other")
	require.Equal(t, "500", status)
	require.Equal(t, "ERROR\twhat it has may be old\n", body)
	require.Equal(t, `"h" 1978`, f.tuned)

	alone := newServerWith(t, db.Options{}, httpapi.Options{Claim: func(bool) error { return nil }}).dial(t)
	require.Empty(t, alone.ok("tune_replication", "primary", "true"), "no RTS file is needed for that")
	status, body = newServer(t).dial(t).call("tune_replication", "primary", "true")
	require.Equal(t, "501", status)
	require.Contains(t, body, "no services' database")
}

func TestBackupStampOfAFollower(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	script := "#!/bin/sh\nprintf %s \"$2\" > " + out + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "backup"), []byte(script), 0o755))
	f := new(fakeFollower)
	c := newServerWith(t, db.Options{}, httpapi.Options{CmdDir: dir, Follower: f}).dial(t)
	for _, row := range []struct {
		name      string
		position  ulog.Stamp
		following bool
		want      string
	}{
		{"position of no master", 5, false, "01795227592000000000"},
		{"master behind the clock", 5, true, "00000000000000000005"},
		{"master ahead of the clock", 1 << 62, true, "01795227592000000000"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f.position, f.following = row.position, row.following
			c.ok("synchronize", "command", "backup")
			text, err := os.ReadFile(out)
			require.NoError(t, err)
			require.Equal(t, row.want, string(text))
		})
	}
}
