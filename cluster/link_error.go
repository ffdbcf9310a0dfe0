package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// isAway reports whether nothing has answered at the address of a member. Otherwise the member has
// answered, and does not let us in.
func isAway(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// plainly returns the text of an error of a connection, without what differs from one try to the
// next.
func plainly(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Sprintf("no answer within %v", dialTimeout)
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("the name %s is unknown (%s)", name.Name, name.Err)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // without our words around it, which name the member again
	}
	return err.Error()
}
