package ulog

import (
	"errors"
	"fmt"
	"io"

	"gotycoon/internal/vfs"
)

// windowSize is how much is read at once. A larger record gets a larger buffer, until the next read.
const windowSize = 256 << 10

// window gives access to the bytes of a file through a buffer.
type window struct {
	f   vfs.File
	buf []byte
	off int64 // of buf[0] in the file
}

// at returns the n bytes at off, valid until the next call. The caller knows that the file has them and that
// bytes below limit do not change any more; nothing behind limit is read. Bytes from keep on stay in the buffer if they fit.
func (w *window) at(keep, off int64, n int, limit int64) ([]byte, error) {
	if off < w.off || off+int64(n) > w.end() {
		if err := w.fill(keep, off, n, limit); err != nil {
			return nil, err
		}
	}
	i := int(off - w.off)
	return w.buf[i : i+n], nil
}

func (w *window) end() int64 { return w.off + int64(len(w.buf)) }

// fill moves the window so that it holds the n bytes at off and as much behind them as there is room for.
func (w *window) fill(keep, off int64, n int, limit int64) error {
	if off+int64(n)-keep > windowSize {
		keep = off
	}
	size := max(windowSize, int(off-keep)+n)
	have := w.slide(keep, size)
	size = int(min(int64(size), limit-keep))
	got, err := w.f.ReadAt(w.buf[have:size], keep+int64(have))
	w.buf = w.buf[:have+got]
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read update log: %w", err)
	}
	if w.end() < off+int64(n) {
		return fmt.Errorf("read update log: %w", io.ErrUnexpectedEOF)
	}
	return nil
}

// slide makes keep the beginning of a buffer of the given size and returns how many bytes it already holds.
func (w *window) slide(keep int64, size int) int {
	old := w.buf
	if cap(old) < size || cap(old) > 4*size {
		w.buf = make([]byte, size)
	}
	w.buf = w.buf[:size]
	have := 0
	if keep >= w.off && keep < w.off+int64(len(old)) {
		have = copy(w.buf, old[keep-w.off:])
	}
	w.off = keep
	return have
}
