package show

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// OpenInput opens a file for reading, and unpacks one whose name ends in .gz or .zst. size is that of what is read, -1 where it
// is not known.
func OpenInput(name string) (in io.ReadCloser, size int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: open error", name)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		return f, -1, nil
	}
	if in, packed, err := unpacked(name, f); packed {
		return in, -1, err
	}
	return f, info.Size(), nil
}

// unpacked returns the content of a file that is compressed, as its name says; packed tells whether it is.
func unpacked(name string, f io.ReadCloser) (in io.ReadCloser, packed bool, err error) {
	switch {
	case strings.HasSuffix(name, ".gz"):
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, true, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
		}
		return unpacker{z, f}, true, nil
	case strings.HasSuffix(name, ".zst"):
		z, err := zstd.NewReader(f)
		if err != nil {
			return nil, true, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
		}
		return unpacker{z.IOReadCloser(), f}, true, nil
	}
	return nil, false, nil
}

// unpacker reads what is unpacked, and closes the file under it too.
type unpacker struct {
	io.ReadCloser
	file io.Closer
}

// Close closes both.
func (u unpacker) Close() error { return errors.Join(u.ReadCloser.Close(), u.file.Close()) }
