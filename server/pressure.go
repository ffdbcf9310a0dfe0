package server

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"gotycoon/db/gate"
)

// Pressure is which updates the server refuses at the moment for want of room, and the figures
// behind the refusal.
type Pressure struct {
	Disk, Memory, Size bool // updates are refused because of -min-free, -memory, -max-size

	DiskSince, MemorySince, SizeSince time.Time // when the refusals began

	Place   string // directory on the fullest disk that updates go to; empty: no disk is looked at
	Least   int64  // bytes that are kept free on it
	Asked   int64  // bytes that -min-free asks for; more than Least where the disk is small
	Total   int64  // bytes of the disk
	Needed  int64  // bytes that files are still to take from memory
	Free    int64  // bytes free on the fullest disk that updates go to; -1: no disk is looked at
	Used    int64  // bytes of the process as -memory counts them; 0 without a limit
	Limit   int64  // of Used; 0: none
	Records int64  // bytes of records as -max-size counts them; 0 without -max-size
	Held    int64  // bytes that requests hold, unread replies included
	Denied  int64  // requests refused for want of memory
}

const mib = 1 << 20

// begin notes when something begins to be refused.
func (now *Pressure) begin(was Pressure) {
	at := time.Now()
	for _, of := range []struct {
		now, was bool
		at       *time.Time
		before   time.Time
	}{
		{now.Disk, was.Disk, &now.DiskSince, was.DiskSince},
		{now.Memory, was.Memory, &now.MemorySince, was.MemorySince},
		{now.Size, was.Size, &now.SizeSince, was.SizeSince},
	} {
		switch {
		case of.now && of.was:
			*of.at = of.before
		case of.now:
			*of.at = at
		}
	}
}

// reasons returns what is refused, because of which limit, and since when. held names those who
// keep most of the update log.
func (now Pressure) reasons(c LimitsConfig, held string) (reasons []string) {
	if now.Disk {
		text := fmt.Sprintf("no room: updates are refused since %s, removals are taken: "+
			"%d MiB are free in %s (mounted on %s), and %s",
			since(now.DiskSince), now.Free/mib, now.Place, mount(now.Place), now.kept())
		if held != "" {
			text += "; the update log keeps files for " + held
		}
		reasons = append(reasons, text)
	}
	if now.Memory {
		reasons = append(reasons, fmt.Sprintf("no room: updates of databases in memory are refused since %s, removals are taken: the process uses %d MiB of %d MiB (-memory)",
			since(now.MemorySince), now.Used/mib, now.Limit/mib))
	}
	if now.Size {
		reasons = append(reasons, fmt.Sprintf("no room: updates are refused since %s, removals are taken: the records take %d MiB of %d MiB (-max-size)",
			since(now.SizeSince), now.Records/mib, c.MaxSize/mib))
	}
	return reasons
}

// kept says what is kept free on the fullest disk, and why.
func (now Pressure) kept() string {
	text := fmt.Sprintf("%d MiB are kept free (-min-free", now.Least/mib)
	if now.Least < now.Asked {
		text += fmt.Sprintf(" asks for %d MiB, but of this disk no more than a sixteenth is kept, and it has %d MiB",
			now.Asked/mib, now.Total/mib)
	}
	text += ")"
	if now.Needed >= mib {
		text += fmt.Sprintf(", and %d MiB for what database files are still to take from memory", now.Needed/mib)
	}
	return text
}

func since(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// mount returns the directory that the file system of dir is mounted on.
func mount(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "?"
	}
	device, ok := deviceOf(dir)
	for ok && dir != "/" {
		parent := filepath.Dir(dir)
		if above, known := deviceOf(parent); !known || above != device {
			break
		}
		dir = parent
	}
	return dir
}

func deviceOf(dir string) (device uint64, ok bool) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return uint64(stat.Dev), true // another type on other systems
}

// log writes a line when something begins or ends to be refused. refused are the updates that have
// been refused so far.
func (now Pressure) log(log logger, was Pressure, c LimitsConfig, refused gate.Refusals) {
	switch {
	case now.Disk && !was.Disk:
		log.error("no space: updates are refused, removals go on: directory=%s mount=%s free=%dMiB least=%dMiB min-free=%dMiB "+
			"total=%dMiB needed=%dMiB",
			now.Place, mount(now.Place), now.Free/mib, now.Least/mib, now.Asked/mib, now.Total/mib, now.Needed/mib)
	case was.Disk && !now.Disk:
		log.system("there is space again: updates are taken: directory=%s free=%dMiB seconds=%.0f refused=%d", now.Place, now.Free/mib,
			time.Since(was.DiskSince).Seconds(), refused.Disk)
	}
	switch {
	case now.Memory && !was.Memory:
		log.error("the memory is used up: databases in memory take removals only: used=%dMiB limit=%dMiB (-memory)", now.Used/mib, now.Limit/mib)
	case was.Memory && !now.Memory:
		log.system("there is memory again: updates are taken: used=%dMiB seconds=%.0f refused=%d", now.Used/mib,
			time.Since(was.MemorySince).Seconds(), refused.Memory)
	}
	switch {
	case now.Size && !was.Size:
		log.error("the databases have reached their size: they take removals only: size=%dMiB limit=%dMiB (-max-size)", now.Records/mib, c.MaxSize/mib)
	case was.Size && !now.Size:
		log.system("the databases are below their size again: updates are taken: size=%dMiB seconds=%.0f refused=%d", now.Records/mib,
			time.Since(was.SizeSince).Seconds(), refused.Size)
	}
}
