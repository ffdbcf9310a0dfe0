package ulog

import (
	"errors"
	"fmt"
	"io"

	"gotycoon/internal/vfs"
)

const copySize = 1 << 20

var errStamp = errors.New("time stamp lies centuries ahead")

// cutTail cuts a segment off where the good records end, and says so. The bytes are put aside first.
func (l *Log) cutTail(f vfs.File, s *scanner, size int64) error {
	if s.off == size {
		return nil
	}
	aside := fmt.Sprintf("%s.torn-%d", s.path, l.opts.Now().UnixMilli())
	if err := l.putAside(f, aside, s.off, size); err != nil {
		return fmt.Errorf("put aside the torn end of %s: %w", s.path, err)
	}
	l.logger.Warn("cut the torn end off the update log",
		"file", s.path, "offset", s.off, "size", size-s.off, "kept", aside)
	if err := f.Truncate(s.off); err != nil {
		return err
	}
	return f.Sync()
}

// putAside copies bytes of a segment to another file, behind a line that says where they come from. The line also keeps the
// file from beginning with the byte that makes a segment.
func (l *Log) putAside(f vfs.File, name string, from, to int64) (err error) {
	out, err := l.fs.OpenFile(name, create, filePerm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	line := fmt.Appendf(nil, "torn end of an update log segment, offset %d to %d\n", from, to)
	if _, err = out.WriteAt(line, 0); err != nil {
		return err
	}
	if err = copyRange(out, int64(len(line)), f, from, to); err != nil {
		return err
	}
	if err = out.Sync(); err != nil {
		return err
	}
	return l.fs.SyncDir(l.dir)
}

func copyRange(dst io.WriterAt, at int64, src io.ReaderAt, from, to int64) error {
	b := make([]byte, min(copySize, to-from))
	for from < to {
		b = b[:min(int64(len(b)), to-from)]
		if _, err := src.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if _, err := dst.WriteAt(b, at); err != nil {
			return err
		}
		from, at = from+int64(len(b)), at+int64(len(b))
	}
	return nil
}
