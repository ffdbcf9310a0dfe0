package db

import "errors"

// systemError gives an error from below the code that clients see; errors that have one keep it.
func systemError(err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &Error{Code: SystemError, Message: err.Error(), Err: err}
}
