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

// MemoryLimit returns the bytes of memory that this process may use: those of the machine, or of its control groups where they allow
// less. 0 means that the system does not tell.
func MemoryLimit() int64 {
	total := readTable("/proc/meminfo")["MemTotal"]
	if n := GroupLimit(); n > 0 && (total == 0 || n < total) {
		total = n
	}
	return total
}

// Anonymous returns the bytes of memory that the process occupies beside what it shares with files; 0 when the system does not tell.
func Anonymous() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data)
	const needed = 3 // size, resident, shared
	if len(fields) < needed {
		return 0
	}
	resident, err1 := strconv.ParseInt(string(fields[1]), 10, 64)
	shared, err2 := strconv.ParseInt(string(fields[2]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (resident - shared) * int64(os.Getpagesize())
}

// OpenFiles returns how many files the process may have open. Go has raised the limit as far as it goes when the process began.
func OpenFiles() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int64(min(limit.Cur, 1<<30))
}

// Space tells how many bytes the file system of a directory has, and how many of them are free for this process.
func Space(dir string) (total, free int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(s.Blocks) * s.Bsize, int64(s.Bavail) * s.Bsize, nil
}
