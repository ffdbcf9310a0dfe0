package db

import (
	"gotycoon/db/dberr"
	"gotycoon/db/gate"
	"gotycoon/db/record"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUpdatesAreRefusedBeforeTheyAreInTheLog(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, Options{Services: filepath.Join(dir, "s.kct")}, filepath.Join(dir, "a.kct"), ":")
	file, memory := c.DB(0), c.DB(1)
	value := []byte(strings.Repeat("x", 1000))
	require.NoError(t, file.Set(nil, []byte("a"), value, record.Never))
	require.NoError(t, memory.Set(nil, []byte("a"), value, record.Never))

	c.Gate().Set(gate.Limits{Disk: 2500, Reserve: 1000})
	require.NoError(t, file.Set(nil, []byte("b"), value, record.Never))
	require.NoError(t, file.Set(nil, []byte("c"), value, record.Never))
	at := file.log.Bytes()
	require.ErrorIs(t, file.Set(nil, []byte("d"), value, record.Never), dberr.ErrNoSpace)
	require.Equal(t, at, file.log.Bytes())
	_, _, err := file.Get(nil, nil, []byte("d"))
	require.ErrorIs(t, err, dberr.ErrNoRecord, "a refused update is nowhere")
	_, err = file.SetBulk(nil, []Record{{Key: []byte("e"), Value: value, XT: record.Never}}, true)
	require.True(t, dberr.Refused(err))
	require.NoError(t, memory.Set(nil, []byte("b"), value, record.Never), "it has no log")
	require.NoError(t, c.Services().Set(nil, []byte("lock"), []byte("1"), record.Never))
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, file.Remove(nil, []byte(key)))
	}
	c.Gate().Set(gate.Limits{Disk: -1, Reserve: 0})
	require.ErrorIs(t, file.Clear(nil), dberr.ErrNoSpace, "not even that has room now")

	c.Gate().Set(gate.Limits{Disk: math.MaxInt64, Full: true})
	require.ErrorIs(t, memory.Set(nil, []byte("c"), value, record.Never), dberr.ErrNoMemory)
	require.NoError(t, memory.Remove(nil, []byte("b")))
	require.NoError(t, file.Set(nil, []byte("d"), value, record.Never))
	c.Gate().Set(gate.Limits{Disk: math.MaxInt64, Over: true})
	require.ErrorIs(t, memory.Set(nil, []byte("c"), value, record.Never), dberr.ErrOverSize)
	require.ErrorIs(t, file.Set(nil, []byte("e"), value, record.Never), dberr.ErrOverSize)
	c.Gate().Set(gate.Limits{Disk: math.MaxInt64})
	require.NoError(t, file.Set(nil, []byte("e"), value, record.Never))
}

// Of the services' database only what others rely on is stored where there is no room.
func TestVitalRecordsAreStoredWithoutRoom(t *testing.T) {
	vital := func(key []byte) bool { return string(key) == "bound" }
	c := mustOpen(t, Options{Services: filepath.Join(t.TempDir(), "s.kct"), Vital: vital}, ":")
	d := c.Services()
	c.Gate().Set(gate.Limits{Disk: 10, Reserve: 1000})
	require.ErrorIs(t, d.Set(nil, []byte("quota"), []byte("1"), record.Never), dberr.ErrNoSpace)
	require.NoError(t, d.Set(nil, []byte("bound"), []byte("1"), record.Never))
	_, err := d.SetBulk(nil, []Record{{Key: []byte("bound"), XT: record.Never}, {Key: []byte("quota"), XT: record.Never}}, true)
	require.ErrorIs(t, err, dberr.ErrNoSpace)
}

func TestATransactionIsRefusedAsAWhole(t *testing.T) {
	c := mustOpen(t, Options{}, filepath.Join(t.TempDir(), "a.kct"))
	d := c.DB(0)
	tx, err := d.Begin(nil, false)
	require.NoError(t, err)
	require.NoError(t, tx.DB().Set(nil, []byte("a"), []byte("b"), record.Never))
	c.Gate().Set(gate.Limits{Disk: -1})
	require.ErrorIs(t, tx.Commit(nil), dberr.ErrNoSpace)
	require.Empty(t, contents(t, d))
	c.Gate().Set(gate.Limits{Disk: math.MaxInt64})
	require.NoError(t, d.Set(nil, []byte("a"), []byte("c"), record.Never))
}

func TestSpaceInFilesIsCounted(t *testing.T) {
	c := mustOpen(t, Options{}, filepath.Join(t.TempDir(), "a.kct"))
	d := c.DB(0)
	for i := range 100 {
		require.NoError(t, d.Set(nil, []byte{byte(i)}, make([]byte, 40<<10), record.Never))
	}
	needed, _ := c.FileSpace()
	require.Greater(t, needed, int64(100*40<<10))
	require.Greater(t, c.MemoryUsed(), int64(100*40<<10))
	require.GreaterOrEqual(t, c.RecordBytes(), int64(100*40<<10))
	require.NoError(t, d.file.Checkpoint())
	require.NoError(t, d.Clear(nil))
	require.NoError(t, d.file.Checkpoint())
	needed, reusable := c.FileSpace()
	require.Zero(t, needed)
	require.Greater(t, reusable, int64(100*20<<10))
	require.NotEmpty(t, c.Places())
	c.Shrink()
}
