package klog_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/klog"
)

func TestFormats(t *testing.T) {
	written := func(f klog.Format) string {
		var out bytes.Buffer
		log := slog.New(klog.New(f, &out, slog.LevelInfo))
		log.Debug("not this")
		log.Log(t.Context(), klog.LevelSystem, "a line\nno two", "port", 5)
		return out.String()
	}
	require.Regexp(t, `^\S+: \[SYSTEM\]: a line no two port=5\n$`, written(klog.Original))
	require.Regexp(t, `^time=\S+ level=SYSTEM msg="a line\\nno two" port=5\n$`, written(klog.Text))
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(written(klog.JSON)), &line))
	delete(line, "time")
	require.Equal(t, map[string]any{"level": "SYSTEM", "msg": "a line\nno two", "port": 5.0}, line)
	require.Equal(t, 1, strings.Count(written(klog.JSON), "\n"))
}

func TestTheLevelMayChange(t *testing.T) {
	for _, f := range []klog.Format{klog.Original, klog.Text, klog.JSON} {
		var out bytes.Buffer
		var least slog.LevelVar
		log := slog.New(klog.New(f, &out, &least))
		least.Set(klog.LevelSilent)
		log.Error("nothing")
		require.Empty(t, out.String())
		least.Set(slog.LevelInfo)
		log.Info("something")
		require.Contains(t, out.String(), "something")
	}
}
