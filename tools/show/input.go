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

// OpenInput opens a file for reading. A file whose name ends in .gz or .zst is decompressed. size
// is the number of bytes that in will deliver, -1 where it is not known.
func OpenInput(name string) (in io.ReadCloser, size int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, &OpenError{name, err}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if info.IsDir() {
		return nil, 0, errors.Join(fmt.Errorf("%s: is a directory; name a file", name), f.Close())
	}
	if !info.Mode().IsRegular() {
		return f, -1, nil
	}
	if in, packed, err := unpacked(name, f); packed {
		return in, -1, err
	}
	return f, info.Size(), nil
}

// OpenError is the error of a file that cannot be opened.
type OpenError struct {
	Name string
	Err  error
}

// Error is the line of the original, which gives no reason.
func (e *OpenError) Error() string { return e.Name + ": open error" }

// Unwrap returns the reason.
func (e *OpenError) Unwrap() error { return e.Err }

// unpacked returns the decompressed content of a file. packed reports whether the file's name says
// that it is compressed.
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

// unpacker reads decompressed content. Close closes the decompressor and the file.
type unpacker struct {
	io.ReadCloser
	file io.Closer
}

// Close closes both.
func (u unpacker) Close() error { return errors.Join(u.ReadCloser.Close(), u.file.Close()) }
