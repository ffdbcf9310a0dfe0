package paging

import (
	"errors"
	"fmt"
	"io"
	"os"

	bolt "go.etcd.io/bbolt"
)

// copyBytes are read at a time.
const copyBytes = 1 << 20

// CopyTo writes the file of a transaction to w as bolt.Tx.WriteTo does, and gives back the pages
// that were not in memory before. path is the name of the file now, which may be another one than
// bbolt has opened it under; info says which file it is.
func CopyTo(tx *bolt.Tx, path string, info os.FileInfo, w io.Writer) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return tx.WriteTo(w)
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil || !supported || !os.SameFile(now, info) { // a compaction has put another file there
		return tx.WriteTo(w)
	}
	noReadAhead(f)
	m := metaPages{w: w, left: 2 * tx.DB().Info().PageSize}
	if _, err := tx.WriteTo(&m); err != nil && !errors.Is(err, errMetaWritten) {
		return m.written, err
	}
	n, err := copyPages(fileOf(tx), f, w, m.written)
	return m.written + n, err
}

// metaPages takes the beginning of a file from WriteTo, which makes it anew.
type metaPages struct {
	w       io.Writer
	left    int
	written int64
}

var errMetaWritten = errors.New("the meta pages are written")

func (m *metaPages) Write(b []byte) (int, error) {
	if m.left == 0 {
		return 0, errMetaWritten
	}
	n, err := m.w.Write(b)
	m.left -= n
	m.written += int64(n)
	return n, err
}

// copyPages copies what is behind the meta pages.
func copyPages(f file, from *os.File, w io.Writer, at int64) (n int64, err error) {
	buf, room := make([]byte, copyBytes), make([]byte, copyBytes/f.page)
	var absent []span
	for size := int64(len(f.data)); at+n < size; {
		part := span{uint64(at+n) / uint64(f.page), min(copyBytes, uint64(size-at-n)) / uint64(f.page)}
		absent = absent[:0]
		eachAbsent(f, part, room[:part.n], func(s span) { absent = append(absent, s) })
		piece := buf[:len(f.bytes(part))]
		if _, err := from.ReadAt(piece, at+n); err != nil {
			return n, fmt.Errorf("read the file: %w", err)
		}
		for _, s := range absent {
			dropFromCache(from, int64(s.page)*int64(f.page), int64(s.n)*int64(f.page))
		}
		written, err := w.Write(piece)
		n += int64(written)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
