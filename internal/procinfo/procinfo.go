// Package procinfo asks the operating system about the memory of the machine and of this process,
// and about the processor time this process has used. It serves the sys_ rows of the report
// procedure.
package procinfo

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Info is a snapshot. A value that the system does not report is 0.
type Info struct {
	MemTotal, MemFree, MemCached int64         // of the machine, in bytes
	MemSize, MemRSS, MemPeak     int64         // of the process: see sizes; resident; peak of MemSize
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
		MemRSS:    process["VmRSS"],
	}
	info.MemSize, info.MemPeak = sizes(process)
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err == nil {
		info.User = time.Duration(ru.Utime.Nano())
		info.System = time.Duration(ru.Stime.Nano())
	}
	return info
}

// sizes returns what a process has taken of memory and of addresses that memory belongs to: its own
// data, its program, and the parts of files that are in memory. Its virtual size would frighten:
// each database file has 64 GiB of addresses from the start, so that it need not be mapped anew
// when it grows, and these take no memory. The peak counts the same addresses off.
func sizes(process map[string]int64) (size, peak int64) {
	virtual := process["VmSize"]
	size = min(virtual, process["VmData"]+process["VmStk"]+process["VmExe"]+process["VmLib"]+process["RssFile"])
	return size, process["VmPeak"] - (virtual - size)
}

func readTable(path string) map[string]int64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return parseTable(data)
}

// parseTable reads lines of the form "Name: 123 kB" and returns bytes by name. It skips other
// lines.
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

// MemoryLimit returns the bytes of memory that this process may use: the memory of the machine, or
// the limit of the process's control groups if it is lower. 0 means that the system does not report
// it.
func MemoryLimit() int64 {
	total := readTable("/proc/meminfo")["MemTotal"]
	if n := GroupLimit(); n > 0 && (total == 0 || n < total) {
		total = n
	}
	return total
}

// Anonymous returns the resident memory of the process in bytes, without the pages that it shares
// with files; 0 if the system does not report it.
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

// OpenFiles returns the number of files that the process may have open. The Go runtime has raised
// this limit to the hard limit at the start of the process.
func OpenFiles() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int64(min(limit.Cur, 1<<30))
}

// Space returns the size of a directory's file system and the bytes that are free for this process.
func Space(dir string) (total, free int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	size := int64(s.Bsize) // its type depends on the system
	return int64(s.Blocks) * size, int64(s.Bavail) * size, nil
}
