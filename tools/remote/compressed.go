package remote

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// unpacked returns the content of a file that is compressed, as its name says with .gz or .zst; packed tells whether it is.
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
