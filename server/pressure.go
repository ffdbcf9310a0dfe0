package server

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Pressure is which updates the server refuses at the moment for want of room, and the figures
// behind the refusal.
type Pressure struct {
	Disk, Memory, Size bool // updates are refused because of -min-free, -memory, -max-size

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

// changed reports whether something has begun or ceased to be refused.
func (now Pressure) changed(was Pressure) bool {
	return now.Disk != was.Disk || now.Memory != was.Memory || now.Size != was.Size
}

// alarms returns what is refused, and because of which limit. held names those who keep most of the
// update log.
func (now Pressure) alarms(c LimitsConfig, held string) (all []alarm) {
	if now.Disk {
		text := fmt.Sprintf("no space: updates are refused, removals are taken: %d MiB are free in %s (mounted on %s), and %s",
			now.Free/mib, now.Place, mount(now.Place), now.kept())
		if held != "" {
			text += "; the update log keeps files for " + held
		}
		all = append(all, alarm{name: alarmDisk, text: text})
	}
	if now.Memory {
		all = append(all, alarm{name: alarmMemory, text: fmt.Sprintf(
			"the memory is used up: updates of databases in memory are refused, removals are taken: the process uses %d MiB of %d MiB (-memory). "+
				"Remove records, or raise the limit: ktremotemgr config set memory SIZE",
			now.Used/mib, now.Limit/mib)})
	}
	if now.Size {
		all = append(all, alarm{name: alarmSize, text: fmt.Sprintf(
			"the databases have reached their size: updates are refused, removals are taken: the records take %d MiB of %d MiB (-max-size). "+
				"Remove records, or raise the limit: ktremotemgr config set max-size SIZE",
			now.Records/mib, c.MaxSize/mib)})
	}
	return all
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
