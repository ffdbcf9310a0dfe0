package ulog

import "gotycoon/internal/vfs"

// startSegment returns the segment in which to look for records newer than after, or 0 when there is none: the one behind the
// newest whose header says that it ends more than a second before, which is older, or the oldest; older is 0 then. The second is the original's
// tolerance. A segment whose header cannot be read or promises more than there is never counts as older.
// The newest segment is the last resort in any case, because its header may lag.
func startSegment(fs vfs.FS, dir string, after Stamp) (start, older uint64, err error) {
	nums, err := listSegments(fs, dir)
	if err != nil || len(nums) == 0 {
		return 0, 0, err
	}
	start = nums[len(nums)-1]
	for i := len(nums) - 2; i >= 0; i-- {
		h, size, err := statSegment(fs, dir, nums[i])
		if err == nil && size >= h.size && h.last+startSlack < after {
			return start, nums[i], nil
		}
		start = nums[i]
	}
	return start, 0, nil
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
