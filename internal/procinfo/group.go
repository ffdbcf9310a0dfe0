package procinfo

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// GroupLimit returns the bytes of memory that the control groups of this process allow, 0 if they
// set no limit. A group's limit also holds for the groups below it, so the lowest limit on the way
// up counts.
func GroupLimit() int64 { return groupLimit("/") }

// groupLimit is GroupLimit for the files below root, for tests with files of their own.
func groupLimit(root string) int64 {
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0
	}
	mounts, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return 0
	}
	least := int64(0)
	for line := range bytes.Lines(groups) {
		// number : controllers : path; version 2 has no controllers.
		parts := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(parts) != 3 {
			continue
		}
		file := ""
		switch {
		case parts[0] == "0" && parts[1] == "":
			file = "memory.max"
		case has(strings.Split(parts[1], ","), "memory"):
			file = "memory.limit_in_bytes"
		default:
			continue
		}
		mounted, dir, ok := groupMount(mounts, parts[1] == "")
		if !ok {
			continue
		}
		if n := leastOnWay(filepath.Join(root, mounted), below(parts[2], dir), file); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// groupMount returns where the groups that limit memory are mounted, and the path of the group at
// the mount point.
func groupMount(mounts []byte, second bool) (mounted, dir string, ok bool) {
	for line := range bytes.Lines(mounts) {
		front, back, found := strings.Cut(string(line), " - ")
		own, kind := strings.Fields(front), strings.Fields(back)
		// own: ID, parent, device, root, mount point, …; kind: type, source, options.
		const ownNeeded, kindNeeded = 5, 3
		if !found || len(own) < ownNeeded || len(kind) < kindNeeded {
			continue
		}
		if second && kind[0] == "cgroup2" || !second && kind[0] == "cgroup" && has(strings.Split(kind[2], ","), "memory") {
			return own[4], own[3], true
		}
	}
	return "", "", false
}

// below returns the path of a group relative to the mounted group. If the path is not below the
// mounted group, which happens in containers that see only one of the two as the host does, the
// group at the mount point is the process's group.
func below(path, dir string) string {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return ""
	}
	return rest
}

// leastOnWay returns the lowest limit of a group and the groups above it, 0 if there is none.
func leastOnWay(mounted, path, file string) int64 {
	least := int64(0)
	for {
		if n, ok := readNumber(filepath.Join(mounted, path, file)); ok && n > 0 && n < unlimited && (least == 0 || n < least) {
			least = n
		}
		if path == "" || path == "/" || path == "." {
			return least
		}
		path = filepath.Dir(path)
	}
}

// unlimited: version 1 of control groups writes the largest multiple of a page for "no limit".
const unlimited = 1 << 62

func readNumber(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 64)
	return n, err == nil
}

func has(words []string, word string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}
