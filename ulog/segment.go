package ulog

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gotycoon/internal/vfs"
)

// A header is the beginning of a segment:
//
//	offset  0      1                    9                    17
//	        ┌──────┬────────────────────┬────────────────────┐
//	        │ a0   │ size, u64          │ last stamp, u64    │
//	        └──────┴────────────────────┴────────────────────┘
//
// All numbers of the format are big-endian.
type header struct {
	size int64 // of the segment when the header was written, these 17 bytes included
	last Stamp // largest stamp then; in the newest segment maybe a greater one, see promise.go
}

func encodeHeader(h header) []byte {
	dst := append(make([]byte, 0, headerSize), magic)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.size))
	return binary.BigEndian.AppendUint64(dst, uint64(h.last))
}

func parseHeader(b []byte) (header, error) {
	if len(b) < headerSize || b[0] != magic {
		return header{}, errHeader
	}
	size, last := binary.BigEndian.Uint64(b[1:]), Stamp(binary.BigEndian.Uint64(b[9:]))
	if size < headerSize || size > math.MaxInt64 {
		return header{}, fmt.Errorf("%w: size %d", errHeader, size)
	}
	if last >= maxStamp {
		return header{}, fmt.Errorf("%w: time stamp %d", errHeader, last)
	}
	return header{int64(size), last}, nil
}

// segmentFront returns what stands in front of the first update of a segment that begins behind the
// stamp last.
func segmentFront(head header, state []byte, last Stamp) []byte {
	b := appendCommit(encodeHeader(head), headerSize, last, 0)
	return append(b, repeated(state, last)...)
}

const (
	segmentExt    = ".ulog"
	segmentDigits = 10

	// unborn is added to the name of a segment until the segment has a header on the disk: a file
	// with the name of a segment was never empty.
	unborn = ".new"

	aheadPrefix = "value-" // of a file with a value that was written ahead
)

func segmentName(n uint64) string { return fmt.Sprintf("%0*d%s", segmentDigits, n, segmentExt) }

// parseSegmentName returns the number of a segment. A file whose name differs in any way is no
// segment, as for the original.
func parseSegmentName(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, segmentExt)
	if !ok || len(digits) != segmentDigits {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0
}

// isAhead reports whether a file of the log's directory has a value that was written ahead.
func isAhead(name string) bool {
	return strings.HasPrefix(name, aheadPrefix) && strings.HasSuffix(name, segmentExt+unborn)
}

// listFiles returns the names of the files in dir, sorted.
//
// A list that is made while segments begin may lack one of them and have a later one: a system
// promises only the files that were there before. A reader would take that for a gap. So where
// a number is missing, dir is listed again until the segment behind it is one of the list before:
// the missing one is older, and would be in the list.
//
//	first list    5290 5291      5293     begun meanwhile: 5292, 5293
//	second list   5290 5291 5292 5293     and now 5292 must be in the list
func listFiles(fs vfs.FS, dir string) ([]string, error) {
	for before := uint64(0); ; {
		names, err := fs.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("list update log: %w", err)
		}
		var last, behind uint64 // behind the last missing number
		for _, name := range names {
			n, ok := parseSegmentName(name)
			if ok && last > 0 && n != last+1 {
				behind = n
			}
			if ok {
				last = n
			}
		}
		if behind <= before {
			return names, nil
		}
		before = last
	}
}

// listSegments returns the numbers of the segments in dir in growing order.
func listSegments(fs vfs.FS, dir string) ([]uint64, error) {
	names, err := listFiles(fs, dir)
	if err != nil {
		return nil, err
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

// readHeader reads the header of an open segment. The error is about the bytes or about reading
// them.
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

// headerAt returns the segment header that a file begins with. A segment that is being created does
// not count yet.
func headerAt(fs vfs.FS, dir, name string) (header, bool) {
	if strings.HasSuffix(name, unborn) {
		return header{}, false
	}
	f, err := fs.OpenFile(dir+"/"+name, readOnly, 0)
	if err != nil {
		return header{}, false
	}
	defer f.Close()
	h, err := readHeader(f)
	return h, err == nil
}

const startSlack = 1000 * Stamp(perMilli) // one second

// startSegment returns the segment in which to look for records newer than after, 0 when there is
// no segment. It is, from the newest segment backwards, the first for which one of these rules
// holds:
//   - The segment begins with a boundary that is not newer than after. This rule is exact, and
//     holds for segments that we have begun.
//   - The header of the segment in front of it says that it ends more than a second before after.
//     This rule is the original's, tolerance included. A segment whose header cannot be read, or
//     promises more than there is, never counts as older. The newest segment's own header may lag,
//     so it is not asked.
//   - It is the oldest.
//
// older is the number of the segment in front of start that proves that nothing between the two is
// newer than after; 0 without such a proof. Damage in front of a segment that begins with a
// boundary concerns nobody who needs only what comes after.
func startSegment(fs vfs.FS, dir string, after Stamp) (start, older uint64, err error) {
	nums, err := listSegments(fs, dir)
	if err != nil || len(nums) == 0 {
		return 0, 0, err
	}
	start = nums[len(nums)-1]
	for i := len(nums) - 1; i >= 0; i-- {
		if at, ok := boundary(fs, dir, nums[i]); ok && at <= after {
			return nums[i], nums[i] - 1, nil
		}
		if i == len(nums)-1 {
			continue
		}
		h, size, err := statSegment(fs, dir, nums[i])
		if err == nil && size >= h.size && h.last+startSlack < after {
			return start, nums[i], nil
		}
		start = nums[i]
	}
	return start, 0, nil
}

// boundary returns the stamp of the commit record without records that a segment of ours begins
// with: the stamp of the last record in front of the segment.
func boundary(fs vfs.FS, dir string, n uint64) (Stamp, bool) {
	f, err := fs.OpenFile(filepath.Join(dir, segmentName(n)), readOnly, 0)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var b [headerSize + commitSize]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return 0, false
	}
	raw := b[headerSize:]
	msg := raw[RecordHead : len(raw)-1]
	if raw[0] != startMark || raw[len(raw)-1] != endMark || !isCommit(msg) || binary.BigEndian.Uint32(raw[9:]) != commitMessage {
		return 0, false
	}
	c, err := parseCommit(msg)
	if _, herr := parseHeader(b[:]); herr != nil || err != nil || c.count != 0 || commitCRC(0, raw) != c.crc {
		return 0, false
	}
	return Stamp(binary.BigEndian.Uint64(raw[1:])), true
}

// segmentAfter returns the smallest segment number above n, or 0 when there is none. Nearly always
// it is the next number, and a log of thousands of segments need not be listed for each of them.
func segmentAfter(fs vfs.FS, dir string, n uint64) (uint64, error) {
	if _, err := fs.Stat(filepath.Join(dir, segmentName(n+1))); err == nil {
		return n + 1, nil
	}
	nums, err := listSegments(fs, dir)
	for _, num := range nums {
		if num > n {
			return num, err
		}
	}
	return 0, err
}
