package quota

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/record"
	"gotycoon/internal/vfs/crashfs"
	"gotycoon/services/internal/servicetest"
	"gotycoon/services/internal/webport"
)

// A power cut leaves the export before or the new one, whole, and the new one when the export is
// done.
func TestExportsSurviveAPowerCut(t *testing.T) {
	d := servicetest.OpenDB(t, t.TempDir())
	require.NoError(t, d.Set(nil, journalKey("", 1), []byte("5"), record.Never))
	require.NoError(t, d.Set(nil, quotaKey("", "state"), []byte("0 1 0"), record.Never))
	for step, done := 0, false; !done; step++ {
		root := t.TempDir()
		file := filepath.Join(root, "journals")
		require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
		fs, err := crashfs.New(root)
		require.NoError(t, err)
		if fs.CutAfter(step + 1); step == 0 {
			fs.CutAfter(0) // never
		}
		e := &exporter{file: file, records: &records{Records: webport.Records{DB: d}}, fs: fs}
		err = e.export("")
		left := map[string]bool{}
		for seed := range uint64(50) {
			dst := filepath.Join(t.TempDir(), fmt.Sprint(seed))
			require.NoError(t, fs.Crash(rand.New(rand.NewPCG(seed, 0)), dst))
			text, err := os.ReadFile(filepath.Join(dst, "journals"))
			require.NoError(t, err)
			left[string(text)] = true
		}
		if err != nil {
			require.ErrorIs(t, err, crashfs.ErrPowerCut)
			delete(left, "old")
			delete(left, "1 5\n")
			require.Empty(t, left)
			continue
		}
		require.Equal(t, map[string]bool{"1 5\n": true}, left)
		done = step > 0
	}
}
