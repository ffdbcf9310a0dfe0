package filestore

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/ulog/update"
)

// Who waits for a stop or a sync is told how much is left, also within one large overlay, and less
// each time.
func TestWhatIsLeftToWriteIsTold(t *testing.T) {
	s, _ := quiet(t, Options{Limit: 1 << 30})
	var text bytes.Buffer
	p := newProgress(s.path, s.Unwritten, slog.New(slog.NewTextHandler(&text, nil)))
	p.every = 0
	value := make([]byte, 1000)
	for i := range 50_000 {
		s.Apply(0, []update.Update{{Op: update.OpSet, Key: fmt.Appendf(nil, "%08d", i), Value: value}})
	}
	all := int(s.Unwritten() >> 20)
	require.NoError(t, s.flushTo(s.freeze(), false, p))

	var left []int
	for _, m := range regexp.MustCompile(`(\d+) MiB of updates are left to write`).FindAllSubmatch(text.Bytes(), -1) {
		n, err := strconv.Atoi(string(m[1]))
		require.NoError(t, err)
		left = append(left, n)
	}
	require.Greater(t, len(left), 3, "one for each transaction: %s", text.String())
	require.Less(t, left[0], all)
	require.True(t, slices.IsSortedFunc(left, func(a, b int) int { return b - a }), left)
	require.Zero(t, left[len(left)-1])
}
