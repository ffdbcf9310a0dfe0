package ulog

import (
	"encoding/binary"
	"path/filepath"

	"gotycoon/internal/vfs"
)

// startSegment returns the segment in which to look for records newer than after, or 0 when there is none: the newest that begins
// with a boundary that is not newer, or the one behind the newest whose header says that it ends more than a second before, or the
// oldest. older is the number of the segment in front of it that proves that nothing between the two is newer than after; 0 without such a
// proof. The first rule is exact, and holds for segments that we have begun; damage in front of such a segment concerns nobody who
// needs only what comes after. The second is the original's, tolerance included. A segment whose header cannot be read or promises more
// than there is never counts as older. The newest segment is the last resort in any case, because its header may lag.
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

// boundary returns the stamp of the commit record without records that a segment of ours begins with: that of the last record in front of the
// segment.
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
	msg := raw[frameHead : len(raw)-1]
	if raw[0] != startMark || raw[len(raw)-1] != endMark || !isCommit(msg) || binary.BigEndian.Uint32(raw[9:]) != commitMessage {
		return 0, false
	}
	c, err := parseCommit(msg)
	if _, herr := parseHeader(b[:]); herr != nil || err != nil || c.count != 0 || commitCRC(0, raw) != c.crc {
		return 0, false
	}
	return Stamp(binary.BigEndian.Uint64(raw[1:])), true
}

// segmentAfter returns the smallest segment number above n, or 0 when there is none.
func segmentAfter(fs vfs.FS, dir string, n uint64) (uint64, error) {
	nums, err := listSegments(fs, dir)
	for _, num := range nums {
		if num > n {
			return num, err
		}
	}
	return 0, err
}
