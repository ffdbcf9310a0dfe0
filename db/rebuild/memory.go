package rebuild

import (
	"os"
	"strconv"
	"strings"
)

const (
	leastMemory = 64 << 20
	mostMemory  = 4 << 30
	memoryShare = 4 // one part of so many
)

// defaultMemory returns how much memory records may take that have to be sorted: what does not fit is written and read once
// more.
func defaultMemory() int64 {
	available := int64(mostMemory)
	if n, ok := availableMemory(); ok {
		available = n
	}
	for _, limit := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(limit)
		if n, perr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && perr == nil {
			available = min(available, n)
		}
	}
	return max(leastMemory, min(available/memoryShare, mostMemory))
}

// availableMemory returns what the system could give without swapping.
func availableMemory() (int64, bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemAvailable:" {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		return n << 10, err == nil
	}
	return 0, false
}
