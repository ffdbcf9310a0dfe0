package ulog

import (
	"errors"
	"fmt"
	"io"

	"gotycoon/internal/vfs"
)

// windowSize is how much is read at once at most, except for a larger record. minWindow is the
// smallest buffer, which is enough for a reader at the end of a log.
const (
	windowSize = 256 << 10
	minWindow  = 4 << 10
)

// A window gives access to the bytes of a file through a buffer.
type window struct {
	f   vfs.File
	buf []byte
	off int64 // of buf[0] in the file

	room func(bytes int) error // see Reader.OnRoom; nil: nobody counts
	held int                   // bytes that room has given
}

// at returns the n bytes at off, valid until the next call. The caller knows that the file has them
// and that bytes below limit do not change any more; nothing behind limit is read. Bytes from keep
// on stay in the buffer if they fit.
func (w *window) at(keep, off int64, n int, limit int64) ([]byte, error) {
	if off < w.off || off+int64(n) > w.end() {
		if err := w.fill(keep, off, n, limit); err != nil {
			return nil, err
		}
	}
	i := int(off - w.off)
	return w.buf[i : i+n], nil
}

// over returns a window over another file with the same buffer.
func (w *window) over(f vfs.File) window {
	return window{f: f, buf: w.buf[:0], room: w.room, held: w.held}
}

func (w *window) end() int64 { return w.off + int64(len(w.buf)) }

// fill moves the window so that it holds the n bytes at off and as much behind them as there is
// room for.
func (w *window) fill(keep, off int64, n int, limit int64) error {
	if off+int64(n)-keep > windowSize {
		keep = off
	}
	size := int(min(int64(max(windowSize, int(off-keep)+n)), limit-keep))
	have, err := w.slide(keep, size)
	if err != nil {
		return err
	}
	got, err := w.f.ReadAt(w.buf[have:], keep+int64(have))
	w.buf = w.buf[:have+got]
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read update log: %w", err)
	}
	if w.end() < off+int64(n) {
		return fmt.Errorf("read update log: %w", io.ErrUnexpectedEOF)
	}
	return nil
}

// park gives the buffer back while there is nothing to read, unless it is small: thousands of
// followers may wait.
func (w *window) park() {
	if cap(w.buf) > minWindow {
		w.buf = nil
		_ = w.count(0) // gives back, which does not fail
	}
}

// slide makes keep the beginning of a buffer of size bytes and returns how many of them the buffer
// already holds.
func (w *window) slide(keep int64, size int) (have int, err error) {
	old := w.buf
	if cap(old) < size || cap(old) > windowSize && size <= windowSize {
		room := max(size, minWindow, min(2*cap(old), windowSize))
		if err := w.count(room); err != nil {
			return 0, err
		}
		w.buf = make([]byte, room)
	}
	w.buf = w.buf[:size]
	if keep >= w.off && keep < w.off+int64(len(old)) {
		have = copy(w.buf, old[keep-w.off:])
	}
	w.off = keep
	return have, nil
}

// count asks for the room that a buffer of size bytes takes beyond windowSize, before the buffer is
// made, and gives back the room of the previous buffer.
func (w *window) count(size int) error {
	size = max(size-windowSize, 0)
	if w.room == nil || size == w.held {
		return nil
	}
	if size > 0 {
		if err := w.room(size); err != nil {
			return err
		}
	}
	if w.held > 0 {
		_ = w.room(-w.held) // see Reader.OnRoom
	}
	w.held = size
	return nil
}
