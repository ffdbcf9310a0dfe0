//go:build linux

package main

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who looks for stalls looks until its input ends, and says what it has seen.
func TestStallsUntilTheInputEnds(t *testing.T) {
	in, end := io.Pipe()
	var out bytes.Buffer
	ended := make(chan error)
	go func() { ended <- printStalls(in, &out) }()
	_, err := io.Copy(end, strings.NewReader("still here\n"))
	require.NoError(t, err)
	require.NoError(t, end.Close())
	if err := <-ended; err != nil {
		require.ErrorIs(t, err, syscall.EPERM, "the only reason for which nobody can look")
		require.Empty(t, out.String(), "what nobody has seen")
		return
	}
	ms, err := strconv.ParseFloat(strings.TrimSpace(out.String()), 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, ms, 0.0)
}
