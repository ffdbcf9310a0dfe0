package db

import (
	"errors"
	"fmt"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
)

// engineError gives an error of the engine the code that clients see. Other errors stay as they
// are.
func engineError(err error) error {
	e, is := errors.AsType[*engine.Error](err)
	if !is {
		return err
	}
	switch e.Kind {
	case engine.Refused:
		return &dberr.Error{Code: dberr.InvalidOperation, Message: e.Error(), Err: err}
	case engine.Full:
		return &dberr.Error{Code: dberr.SystemError, Message: "no space: the engine is full, only removals are possible", Err: dberr.ErrNoSpace}
	case engine.Undone:
		return &dberr.Error{Code: dberr.SystemError, Message: e.Error(), Err: dberr.ErrEngine}
	default:
		return &dberr.Error{Code: dberr.SystemError, Message: e.Error(), Err: dberr.ErrOutcome}
	}
}

// inPart says of an error of a bulk that n records were stored or removed before. Other errors than
// those of an engine stay as they are.
func inPart(n int, done string, err error) error {
	e, is := errors.AsType[*dberr.Error](err)
	if n == 0 || !is || !errors.Is(err, dberr.ErrEngine) {
		return err
	}
	return &dberr.Error{Code: e.Code, Err: e.Err, Message: fmt.Sprintf("the engine has not answered; %d of the records were %s", n, done)}
}
