package dberr

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorTexts(t *testing.T) {
	for err, want := range map[error]string{
		ErrNoRecord:       "7: no record: no record",
		ErrDuplicate:      "6: record duplication: record duplication",
		ErrConflict:       "8: logical inconsistency: status conflict",
		ErrLogic:          "8: logical inconsistency: logical inconsistency",
		ErrNotImplemented: "1: not implemented: not implemented",
		ErrReadOnly:       "4: no permission: permission denied",
		ErrPostproc:       "8: logical inconsistency: postprocessing failed",
		ErrRegex:          "8: logical inconsistency: compilation failed",
		ErrUnknownType:    "2: invalid operation: unknown database type",
	} {
		require.EqualError(t, err, want)
	}
}

func TestCodeNames(t *testing.T) {
	require.Equal(t, "success", Success.String())
	require.Equal(t, "no repository", NoRepository.String())
	require.Equal(t, "broken file", BrokenFile.String())
	require.Equal(t, "system error", SystemError.String())
	require.Equal(t, "miscellaneous error", Miscellaneous.String())
	require.Equal(t, "miscellaneous error", Code(77).String())
}

func TestErrorHasACause(t *testing.T) {
	err := fmt.Errorf("wrapped: %w", &Error{Code: BrokenFile, Message: "too short", Err: io.ErrUnexpectedEOF})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	var known *Error
	require.True(t, errors.As(err, &known))
	require.Equal(t, BrokenFile, known.Code)
	require.EqualError(t, known, "5: broken file: too short")
}
