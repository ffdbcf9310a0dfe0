package replication

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/crashfs"
	"gotycoon/ulog"
)

// The first rows are recorded: rts-reconnect-tunerepl.txt.
func TestRTSFilesThatAreAccepted(t *testing.T) {
	for _, row := range []struct {
		name, text string
		want       ulog.Stamp
	}{
		{"empty", "", 0},
		{"few digits", "123", 123},
		{"no leading zeros", "1795228910446000000\n", 1795228910446000000},
		{"garbage", "garbage", 0},
		{"too long", "0000000000000000000000000000000000000000", 0},
		{"blanks", "  42\n", 42},
		{"sign", "\t+7 8", 7},
		{"usual form", "01795230626907000000\n", 1795230626907000000},
		{"more than a number can be", "99999999999999999999\n", 7766279631452241919},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rts")
			require.NoError(t, os.WriteFile(path, []byte(row.text), 0o600))
			r, err := openRTS(vfs.OS{}, path)
			require.NoError(t, err)
			require.Equal(t, row.want, r.saved)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Regexp(t, `^\d{20}\n$`, string(text))

			require.NoError(t, r.save(1795230626907000001))
			require.NoError(t, r.close())
			text, err = os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, "01795230626907000001\n", string(text))
		})
	}
}

func TestMissingRTSFileIsCreated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rts")
	r, err := openRTS(vfs.OS{}, path)
	require.NoError(t, err)
	require.NoError(t, r.close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "00000000000000000000\n", string(text))

	_, err = openRTS(vfs.OS{}, filepath.Join(path, "rts"))
	require.Error(t, err)
}

func TestThrottle(t *testing.T) {
	full := throttle{}
	full.add(1000, 1000)
	require.Zero(t, full.owed)
	require.Equal(t, 1000, full.batch(1000))

	slow := throttle{interval: 10 * time.Millisecond}
	require.Equal(t, 10, slow.batch(1000))
	slow.add(9, 0)
	slow.pay(t.Context())
	require.Equal(t, 90*time.Millisecond, slow.owed, "less than a step is kept")
	slow.add(2, 0)
	begun := time.Now()
	slow.pay(t.Context())
	require.GreaterOrEqual(t, time.Since(begun), throttleStep)
	require.Equal(t, 10*time.Millisecond, slow.owed)
	slow.add(0, 1)
	require.Equal(t, 650*time.Millisecond, slow.owed, "a filler counts 64 updates")

	require.Equal(t, 1, (&throttle{interval: time.Second}).batch(1000))
	require.Equal(t, 1000, (&throttle{interval: 1}).batch(1000))
	require.Equal(t, maxInterval, clampInterval(1<<62))
	require.Zero(t, clampInterval(-1))
}

// A power cut leaves the RTS file of a follower that has begun: without it the follower would begin
// anew.
func TestTheRTSFileSurvivesAPowerCut(t *testing.T) {
	root := t.TempDir()
	disk, err := crashfs.New(root)
	require.NoError(t, err)
	r, err := openRTS(disk, filepath.Join(root, "rts"))
	require.NoError(t, err)
	require.NoError(t, r.save(4711))
	disk.Cut()
	require.NoError(t, r.close())
	for seed := range uint64(20) {
		after := filepath.Join(t.TempDir(), "after")
		require.NoError(t, disk.Crash(rand.New(rand.NewPCG(seed, 0)), after))
		r, err := openRTS(vfs.OS{}, filepath.Join(after, "rts"))
		require.NoError(t, err)
		require.Equal(t, ulog.Stamp(4711), r.saved)
		require.NoError(t, r.close())
	}
}
