// Package procinfo asks the operating system about the memory of the machine and of this process, and about the
// processor time this process has used. It serves the sys_ rows of the report procedure.
package procinfo

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Info is a snapshot. What the system does not tell is 0.
type Info struct {
	MemTotal, MemFree, MemCached int64         // of the machine, in bytes
	MemSize, MemRSS, MemPeak     int64         // of the process, in bytes: virtual, resident, largest virtual
	User, System                 time.Duration // processor time used since the process began
}

// Read takes a snapshot. The sources are /proc/meminfo, /proc/self/status and getrusage.
func Read() Info {
	machine := readTable("/proc/meminfo")
	process := readTable("/proc/self/status")
	info := Info{
		MemTotal:  machine["MemTotal"],
		MemFree:   machine["MemFree"],
		MemCached: machine["Cached"],
		MemSize:   process["VmSize"],
		MemRSS:    process["VmRSS"],
		MemPeak:   process["VmPeak"],
	}
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err == nil {
		info.User = time.Duration(ru.Utime.Nano())
		info.System = time.Duration(ru.Stime.Nano())
	}
	return info
}

func readTable(path string) map[string]int64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return parseTable(data)
}

// parseTable reads lines of the form "Name:   123 kB" and returns bytes by name. Other lines are passed over.
func parseTable(data []byte) map[string]int64 {
	rows := map[string]int64{}
	for line := range bytes.Lines(data) {
		name, rest, found := bytes.Cut(line, []byte(":"))
		fields := bytes.Fields(rest)
		if !found || len(fields) != 2 || string(fields[1]) != "kB" {
			continue
		}
		if n, err := strconv.ParseInt(string(fields[0]), 10, 64); err == nil {
			rows[string(name)] = n << 10
		}
	}
	return rows
}
