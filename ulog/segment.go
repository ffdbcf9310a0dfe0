package ulog

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gotycoon/internal/vfs"
)

const (
	segmentExt    = ".ulog"
	segmentDigits = 10

	// unborn is added to the name of a segment until it has a header on the disk: a segment that has its name was never empty.
	unborn = ".new"
)

func segmentName(n uint64) string { return fmt.Sprintf("%0*d%s", segmentDigits, n, segmentExt) }

// parseSegmentName returns the number of a segment. Files whose names differ in any way are no segments, as for the original.
func parseSegmentName(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, segmentExt)
	if !ok || len(digits) != segmentDigits {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0
}

// listSegments returns the numbers of the segments in dir in growing order.
func listSegments(fs vfs.FS, dir string) ([]uint64, error) {
	names, err := fs.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list update log: %w", err)
	}
	var nums []uint64
	for _, name := range names {
		if n, ok := parseSegmentName(name); ok {
			nums = append(nums, n)
		}
	}
	slices.Sort(nums)
	return nums, nil
}

// readHeader reads the header of an open segment. The error is about the bytes or about reading them.
func readHeader(f vfs.File) (header, error) {
	var b [headerSize]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return header{}, fmt.Errorf("read segment header: %w", err)
	}
	return parseHeader(b[:])
}

// statSegment returns the header and the size of a segment by name.
func statSegment(fs vfs.FS, dir string, n uint64) (h header, size int64, err error) {
	f, err := fs.OpenFile(filepath.Join(dir, segmentName(n)), readOnly, 0)
	if err != nil {
		return h, 0, err
	}
	defer f.Close()
	if h, err = readHeader(f); err != nil {
		return h, 0, err
	}
	size, err = f.Size()
	return h, size, err
}
