package pgserver

import "syscall"

// WithParent makes a process end when this one does, whatever has ended it: it must not go on and
// keep its port.
func WithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
