package db

import (
	"errors"
	"gotycoon/db/dberr"
	"gotycoon/db/owed"
)

// systemError gives an error from below the code that clients see; errors that have one keep it.
func systemError(err error) error {
	if reason := owed.Reason(err); reason != nil {
		return reason
	}
	if _, known := errors.AsType[*dberr.Error](err); known || err == nil {
		return err
	}
	return &dberr.Error{Code: dberr.SystemError, Message: err.Error(), Err: err}
}
