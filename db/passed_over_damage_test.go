package db

import (
	"bytes"
	"gotycoon/db/record"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A log that has another file's updates is not passed over because it is damaged in front of them:
// how many there are is unknown then, not none.
func TestADamagedLogOfAnotherFileIsNotPassedOver(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, segment string){
		"damaged": func(t *testing.T, segment string) {
			text, err := os.ReadFile(segment)
			require.NoError(t, err)
			require.Contains(t, string(text), "only in the log")
			require.NoError(t, os.WriteFile(segment, bytes.Replace(text, []byte("only in the log"), []byte("0nly in the log"), 1), 0o644))
		},
		"emptied": func(t *testing.T, segment string) { require.NoError(t, os.Truncate(segment, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a.kct")
			c := mustOpen(t, Options{ahead: aheadSize}, path)
			mustSet(t, c.DB(0), "k", "only in the log")
			require.NoError(t, c.DB(0).log.SyncTo(c.DB(0).log.Last()))
			require.NoError(t, c.DB(0).Set(nil, []byte("k"), largeAs("l"), record.Never)) // ends the segment
			dir = image(t, dir)
			path = filepath.Join(dir, "a.kct")
			harm(t, filepath.Join(path+privateSuffix, "0000000001.ulog"))
			require.NoError(t, os.Remove(path))
			before := everything(t, []string{dir})
			_, err := Open([]string{path}, Options{})
			require.ErrorContains(t, err, "not the file that was there")
			require.Equal(t, before, everything(t, []string{dir}))
		})
	}
}
