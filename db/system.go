package db

import "errors"

// systemError gives an error from below the code that clients see; errors that have one keep it.
func systemError(err error) error {
	if e, ok := errors.AsType[ended](err); ok {
		return e.error
	}
	if _, known := errors.AsType[*Error](err); known || err == nil {
		return err
	}
	if lack, ok := errors.AsType[unheld](err); ok {
		return lack.error
	}
	return &Error{Code: SystemError, Message: err.Error(), Err: err}
}
