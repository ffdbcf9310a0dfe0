//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cpu returns the processor time, user and system, that the server has used. It is the sum of the
// two times in /proc/PID/stat, to the nanosecond instead of the hundredth of a second.
func (p *process) cpu() (time.Duration, error) { return cpuOf(p.cmd.Process.Pid) }

// cpuOf reads the processor clock of a process. The kernel makes a clock's number of the process ID
// and the kind of clock, see clock_getcpuclockid(3).
func cpuOf(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED: time on a processor, of all threads
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("processor clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// written returns the bytes that the server has made the kernel write to disk: pages that became
// dirty. A page that is written to twice before the kernel gets to it counts once.
func (p *process) written() (int64, error) { return p.io("write_bytes") }

// read returns the bytes that the kernel has read from disk because of the server.
func (p *process) read() (int64, error) { return p.io("read_bytes") }

func (p *process) io(name string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return procNumber(string(text), name)
}

// memory returns the bytes of the server that are in memory, and how many of them are its own: the
// rest are mapped files, which the system takes back when others need the memory.
func (p *process) memory() (resident, own int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	if resident, err = procNumber(string(text), "VmRSS"); err != nil {
		return 0, 0, err
	}
	own, err = procNumber(string(text), "RssAnon")
	return resident, own, err
}

// procNumber returns the number behind "NAME:" in a file of /proc, in bytes where its unit is kB.
func procNumber(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != name+":" {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if len(fields) > 2 && fields[2] == "kB" {
			n <<= 10
		}
		return n, err
	}
	return 0, fmt.Errorf("no %s in %q", name, text)
}

// diskUsed returns the bytes of the blocks that the files below a path take, as du(1) does. Files
// that are removed meanwhile do not count.
func diskUsed(path string) (int64, error) {
	const blockSize = 512 // of Stat_t.Blocks, whatever the file system's is
	sum := int64(0)
	err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				sum += info.Sys().(*syscall.Stat_t).Blocks * blockSize
			}
		}
		if os.IsNotExist(err) {
			return nil
		}
		return err
	})
	return sum, err
}

// diskFree returns the bytes that a process without privileges may still write to the file system
// of a directory.
func diskFree(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("room in %s: %w", dir, err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}
