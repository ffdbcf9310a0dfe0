package ulog

import (
	"errors"
	"fmt"
	"io"

	"gotycoon/internal/vfs"
)

// withoutRoom returns the size of the newest segment without the zeros at its end (room.go). What
// the header promises is never room, and more than mostRoom zeros are none.
func withoutRoom(f vfs.File, size, promised int64) (int64, error) {
	end, b := size, make([]byte, 1, 4<<10)
	for end > promised && size-end <= mostRoom {
		b = b[:min(int64(len(b)), end-promised)]
		n, err := f.ReadAt(b, end-int64(len(b)))
		if n < len(b) {
			if err == nil || errors.Is(err, io.EOF) { // somebody has cut the room off meanwhile
				return end - int64(len(b)-n), nil
			}
			return 0, fmt.Errorf("read update log: %w", err)
		}
		for ; n > 0 && b[n-1] == 0; n-- {
			end--
		}
		if n > 0 {
			break
		}
		b = b[:cap(b)]
	}
	if size-end > mostRoom {
		return size, nil
	}
	return end, nil
}
