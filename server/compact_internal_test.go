package server

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/internal/klog"
)

func TestCompactByRatio(t *testing.T) {
	dir := t.TempDir()
	catalog, err := db.Open([]string{filepath.Join(dir, "a.kct"), filepath.Join(dir, "b.kct"), ":"}, db.Options{CheckpointSize: 64 << 10})
	require.NoError(t, err)
	defer func() { require.NoError(t, catalog.Close()) }()
	ratio := 0.0
	var level slog.LevelVar
	c := newCompactions(catalog.All(), func() float64 { return ratio }, newLogger(klog.Original, io.Discard, &level))
	c.least = 1 << 20
	at := time.Now()
	look := func() {
		t.Helper()
		at = at.Add(compactEvery)
		c.look(at)
	}
	ended := func(i int) int64 {
		d := catalog.DB(i)
		require.Eventually(t, func() bool { return !d.Compaction().Running }, patience, time.Millisecond)
		return d.Compaction().Ended
	}
	for i := range 2 {
		d := catalog.DB(i)
		for n := range 10_000 {
			require.NoError(t, d.Set(nil, fmt.Append(nil, n), make([]byte, 200), record.Never))
		}
		require.NoError(t, d.Synchronize(false, nil))
		require.NoError(t, d.Clear(nil))
		require.NoError(t, d.Synchronize(false, nil))
		require.Greater(t, d.Size(), int64(1<<20))
	}
	look()
	look()
	look()
	require.Zero(t, ended(0)+ended(1), "off by default")
	ratio = 2
	look()
	running := catalog.DB(0).Compaction().Running
	look()
	if running && catalog.DB(0).Compaction().Running {
		require.False(t, catalog.DB(1).Compaction().Running, "never two at a time")
	}
	ended(0)
	look()
	require.EqualValues(t, 1, ended(0))
	look()
	require.EqualValues(t, 1, ended(1))
	require.Less(t, catalog.DB(0).Size(), int64(1<<20))
	look()
	look()
	require.EqualValues(t, 2, ended(0)+ended(1), "nothing more to gain")
}

const patience = 30 * time.Second

func TestCompactAgainAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.kct")
	require.NoError(t, os.WriteFile(path+".compact", []byte("half a copy"), 0o644))
	catalog, err := db.Open([]string{path, ":"}, db.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, catalog.Close()) }()
	var level slog.LevelVar
	c := newCompactions(catalog.All(), func() float64 { return 0 }, newLogger(klog.Original, io.Discard, &level))
	c.look(time.Now())
	d := catalog.DB(0)
	require.Eventually(t, func() bool { return d.Compaction().Ended == 1 }, patience, time.Millisecond)
	require.NoFileExists(t, path+".compact")
	c.look(time.Now())
	require.False(t, d.Compaction().Running)
}

func TestRatioThatNoFileHas(t *testing.T) {
	for ratio, ok := range map[float64]bool{0: true, 1: false, -1: false, 1.1: false, 1.5: true, 10: true} {
		require.Equal(t, ok, checkRatio(ratio) == nil, ratio)
	}
}
