package server

import (
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/internal/klog"
	"gotycoon/internal/netio"
	"gotycoon/services"
)

func TestServicesConfigIsChecked(t *testing.T) {
	for _, c := range []ServicesConfig{
		{CounterPort: 65536}, {LockPort: -1}, {CounterConns: -1}, {CounterBuckets: -1}, {CounterInterval: 1}, {LockKeys: -1},
	} {
		require.Error(t, c.check(), "%+v", c)
	}
	require.NoError(t, (&ServicesConfig{CounterPort: 65535, CounterInterval: shortestInterval}).check())
}

func TestOnlyServicesWithStateNeedADatabase(t *testing.T) {
	require.Empty(t, (&ServicesConfig{CounterPort: 1}).database())
	for _, c := range []ServicesConfig{{LockPort: 1}, {SequencePort: 1}, {QuotaPort: 1}} {
		require.Equal(t, DefaultServices, c.database())
		c.Database = "other.kct"
		require.Equal(t, "other.kct", c.database())
	}
}

// The services' database is in the snapshots under its own number.
func TestServicesAreInTheSnapshots(t *testing.T) {
	dir := t.TempDir()
	c, err := db.Open([]string{":"}, db.Options{Services: filepath.Join(dir, "services.kct")})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	s := newSnapshots(SnapshotConfig{Dir: dir}, 1, newPace(), func() bool { return false }, newLogger(klog.Original, io.Discard, slog.LevelError))
	s.catalog = c
	require.True(t, s.takeAll(nil))
	for _, name := range []string{"00000000.ktss", "00065534.ktss"} {
		_, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
	}
}

// A port that is taken stops the start, and nothing that was started before is left.
func TestAServiceThatCannotListenStopsTheStart(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c := ServicesConfig{CounterPort: l.Addr().(*net.TCPAddr).Port}
	_, err = c.open(&servicesOptions{
		Options: services.Options{Limits: new(netio.Limits)}, Host: "127.0.0.1", Log: newLogger(klog.Original, io.Discard, slog.LevelError),
	})
	require.ErrorContains(t, err, "starting the counter server")
}
