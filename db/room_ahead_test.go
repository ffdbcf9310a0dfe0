package db

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/gate"
	"gotycoon/db/record"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

// The server looks at the disk many times while one large value is written and others wait for
// their turn. A look does not give the room away that is meant for them: the disk would be full
// then, and the next small update would end the log.
func TestALookAtTheDiskKeepsTheRoomOfValuesThatGoAhead(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	c, d := openAhead(t, t.TempDir(), fs)
	room, half := gate.Limits{Disk: 3 * aheadSize / 2, Reserve: 100}, bytes.Repeat([]byte("h"), aheadSize*3/4)
	require.NoError(t, d.Set(nil, []byte("old"), []byte("v"), record.Never))
	c.Gate().Set(room)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	fs.OnSync(func() { entered <- struct{}{}; <-release })
	done := make(chan error)
	go func() { done <- d.Set(nil, []byte("large"), largeAs("l"), record.Never) }()
	<-entered
	fs.OnSync(nil)
	c.Gate().Set(room)
	require.Equal(t, dberr.ErrNoSpace, d.Set(nil, []byte("half"), half, record.Never))
	c.Gate().Set(gate.Limits{Disk: 0, Reserve: 100})
	require.NoError(t, d.Remove(nil, []byte("old")), "removals go on")
	require.False(t, c.gate.NoDisk(), "holds of followers count")
	close(release)
	require.NoError(t, <-done)
	for range 2 {
		c.Gate().Set(gate.Limits{Disk: 0})
		require.Equal(t, dberr.ErrNoSpace, d.Set(nil, []byte("large"), largeAs("m"), record.Never), "refused, and takes no room")
	}
	c.Gate().Set(room)
	require.NoError(t, d.Set(nil, []byte("half"), half, record.Never))
	fs.Space(aheadSize)
	c.Gate().Set(gate.Limits{Disk: 1 << 20})
	require.Equal(t, dberr.ErrNoSpace, d.Set(nil, []byte("large"), largeAs("m"), record.Never))
	fs.Space(1 << 20)
	c.Gate().Set(room)
	require.NoError(t, d.Set(nil, []byte("half"), half, record.Never))
	require.NoError(t, c.Close())
}

// One client's large value that there is no room for is refused alone: what others store goes on.
func TestALargeValueWithoutRoomIsRefusedAlone(t *testing.T) {
	c, d := openAhead(t, t.TempDir(), faultfs.New(vfs.OS{}))
	c.Gate().Set(gate.Limits{Disk: aheadSize / 2})
	require.Equal(t, dberr.ErrNoSpace, d.Set(nil, []byte("large"), largeAs("l"), record.Never))
	require.False(t, c.Gate().RanOut(), "updates are not refused at the next look")
	require.EqualValues(t, 1, c.Gate().Refusals().Disk)
	require.NoError(t, d.Set(nil, []byte("small"), []byte("v"), record.Never))
	require.Equal(t, dberr.ErrNoSpace, d.Set(nil, []byte("most"), bytes.Repeat([]byte("m"), aheadSize-1), record.Never))
	require.True(t, c.Gate().RanOut())
	require.NoError(t, c.Close())
}
