package ulog

import (
	"errors"
	"fmt"
	"io"

	"gotycoon/internal/vfs"
)

// withoutRoom returns the size of the newest segment without the zeros at its end (room.go). What
// the header promises is never room.
func withoutRoom(f vfs.File, size, promised int64) (int64, error) {
	b := make([]byte, 1, 4<<10)
	for size > promised {
		b = b[:min(int64(len(b)), size-promised)]
		n, err := f.ReadAt(b, size-int64(len(b)))
		if n < len(b) { // somebody has cut the room off meanwhile
			if err == nil || errors.Is(err, io.EOF) {
				size, err = f.Size()
				b = b[:1]
			}
			if err != nil {
				return 0, fmt.Errorf("read update log: %w", err)
			}
			continue
		}
		for ; n > 0 && b[n-1] == 0; n-- {
			size--
		}
		if n > 0 {
			break
		}
		b = b[:cap(b)]
	}
	return size, nil
}
