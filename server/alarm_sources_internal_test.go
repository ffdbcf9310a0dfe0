package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
)

// A damaged file that takes updates, but cannot merge them, is an alarm: it looks well otherwise.
func TestADamagedFileIsAnAlarm(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.kct")
	open := func() *db.Catalog {
		c, err := db.Open([]string{path}, db.Options{LogDir: filepath.Join(dir, "ulog")})
		require.NoError(t, err)
		return c
	}
	merged := func(d *db.DB) bool { return d.Measure().File.Runs == 0 }
	fill := func(d *db.DB, value string) {
		for i := range 100 {
			require.NoError(t, d.Set(nil, fmt.Append(nil, i), []byte(value), record.Never))
		}
		require.NoError(t, d.Synchronize(false, nil))
	}
	old := strings.Repeat("old value", 4)

	c := open()
	fill(c.DB(0), old)
	require.Eventually(t, func() bool { return merged(c.DB(0)) }, 10*time.Second, time.Millisecond)
	require.Empty(t, fileAlarms(c))
	require.NoError(t, c.Close())

	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(content, []byte(old), []byte(strings.Repeat("bad value", 4))), 0o600))
	c = open()
	defer c.Close() // after what the test is about
	fill(c.DB(0), "new value")
	var all []alarm
	require.Eventually(t, func() bool { all = fileAlarms(c); return len(all) > 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, alarmFile, all[0].name)
	require.Contains(t, all[0].text, path+" takes updates, but they cannot be merged")
	require.Contains(t, all[0].text, "kttimedmgr repair")
	require.NoError(t, c.DB(0).CheckpointError(), "the file takes updates")
	value, _, err := c.DB(0).Get(nil, nil, []byte("7"))
	require.NoError(t, err)
	require.Equal(t, "new value", string(value))
}
