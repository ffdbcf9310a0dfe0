package snapshot

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

const readOnly = os.O_RDONLY

// damaged wraps an error in a DamageError with its offset, unless err is one already or comes from
// the file system.
func damaged(at int64, err error) error {
	var damage *DamageError
	var system *fs.PathError
	if err == nil || errors.As(err, &damage) || errors.As(err, &system) {
		return err
	}
	return &DamageError{Offset: at, Err: cut(err, errCutBlock)}
}

// cut replaces an error that means the end of the file by another.
func cut(err, by error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return by
	}
	return err
}

// nameFile adds the path to a DamageError that lacks it.
func nameFile(path string, err error) error {
	if damage, ok := errors.AsType[*DamageError](err); ok && damage.File == "" {
		return &DamageError{path, damage.Offset, damage.Err}
	}
	return err
}

func bytesReader(b []byte) io.Reader { return bytes.NewReader(b) }
