package api_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/admin"
	"gotycoon/admin/api"
	"gotycoon/db"
)

// The log's segments are shown with those who need them.
func TestLogHolders(t *testing.T) {
	dir := t.TempDir()
	c, err := db.Open([]string{filepath.Join(dir, "a.kct")}, db.Options{LogDir: filepath.Join(dir, "ulog"), SID: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	_, err = c.Log().Pin("nightly", nil, time.Hour)
	require.NoError(t, err)
	s := serve(t, api.Options{}, func(_ *admin.Options, src *api.Sources) { src.Catalog = c })
	log := s.get("log")["logs"].([]any)[0].(map[string]any)
	require.Zero(t, log["overdue"])
	require.Len(t, log["segments"], 1)
	kinds := map[string]map[string]any{}
	for _, h := range log["holds"].([]any) {
		kinds[h.(map[string]any)["kind"].(string)] = h.(map[string]any)
	}
	require.Equal(t, "the hold nightly", kinds["hold"]["what"])
	require.InDelta(t, time.Hour.Milliseconds(), kinds["hold"]["until"].(float64)-kinds["hold"]["since"].(float64), 1000)
	require.Zero(t, kinds["database"]["until"])
	require.Equal(t, filepath.Join(dir, "a.kct"), kinds["database"]["what"])
}
