package ulog

import (
	"errors"
	"fmt"
)

// These errors can be returned when a message is encoded or decoded.
var (
	// ErrMalformed means that the sizes in a message do not add up to its length.
	ErrMalformed = errors.New("invalid message format")
	// errTooLarge means that an update does not fit the 32-bit size of a record.
	errTooLarge = errors.New("update is too large for the log")
	// errReservedDB means that an update names database 65535, which marks commit records.
	errReservedDB = errors.New("database index 65535 is reserved")
)

// These errors can be returned when a log is used.
var (
	// errClosed means that the log or the reader was closed.
	errClosed = errors.New("update log is closed")
	// errTorn means that the newest segment ends in an incomplete group and Options.NoRepair
	// forbids to cut it.
	errTorn = errors.New("update log ends in an incomplete group")
)

// DamageError says that a segment holds bytes that were once good and no longer are.
type DamageError struct {
	File   string // path of the segment
	Offset int64  // where the damage begins, in bytes
	Err    error  // what is wrong there
}

// Error names the file, the offset and what is wrong.
func (e *DamageError) Error() string {
	return fmt.Sprintf("damaged update log %s at offset %d: %v", e.File, e.Offset, e.Err)
}

// Unwrap returns Err.
func (e *DamageError) Unwrap() error { return e.Err }

// RemoveError says which file of a log could not be removed.
type RemoveError struct {
	Path string
	Err  error
}

// Error names the file and the reason.
func (e *RemoveError) Error() string {
	return "remove update log file " + e.Path + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *RemoveError) Unwrap() error { return e.Err }
