package procinfo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadKnowsThisProcess(t *testing.T) {
	info := Read()
	require.Positive(t, info.MemTotal)
	require.Positive(t, info.MemFree)
	require.Positive(t, info.MemRSS)
	require.GreaterOrEqual(t, info.MemSize, info.MemRSS)
	require.GreaterOrEqual(t, info.MemPeak, info.MemSize)
	require.Positive(t, info.User+info.System)
}

func TestParseTablePassesOverOtherLines(t *testing.T) {
	rows := parseTable([]byte("Name:\tktserver\nVmRSS:\t   12 kB\nHugePages_Total:  0\nbad: x kB\n\nVmSize: 3 kB"))
	require.Equal(t, map[string]int64{"VmRSS": 12 << 10, "VmSize": 3 << 10}, rows)
}

func TestMissingSourceIsNotAnError(t *testing.T) {
	require.Empty(t, readTable(t.TempDir()+"/none"))
}
