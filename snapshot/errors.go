package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Errors of reading, wrapped in a DamageError.
var (
	// ErrNoSnapshot: the file does not begin as a snapshot, or is shorter than a header.
	ErrNoSnapshot = errors.New("it does not begin with the header of a snapshot")
	// ErrCompressor: the records are compressed in a way that this version does not know.
	ErrCompressor = errors.New("its compressor is unknown")

	errCut      = errors.New("the file ends within a record")
	errCutBlock = errors.New("the file ends within a block")
	errBehind   = errors.New("unknown bytes follow the compressed records")
	errMark     = errors.New("no record begins where one should")
	errSize     = errors.New("the size of a record is out of range")
	errNoEnd    = errors.New("the end mark is missing")
)

// ErrStopped is the error that Options.Pause returns in order to interrupt Options.Write.
var ErrStopped = errors.New("the snapshot was interrupted")

// DamageError says where a snapshot is damaged. The records before that place are good.
type DamageError struct {
	File   string // empty if the reader does not know it
	Offset int64  // of the damaged record, or of the block that holds it
	Err    error
}

// Error names the file, the place and the reason.
func (e *DamageError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("damaged snapshot: offset %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("damaged snapshot %s: offset %d: %v", e.File, e.Offset, e.Err)
}

// Unwrap returns the reason.
func (e *DamageError) Unwrap() error { return e.Err }

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

// cut replaces an error that means the end of the file with the error by.
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
