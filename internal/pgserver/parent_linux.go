package pgserver

import "syscall"

// withParent makes a process end when this one does, whatever has ended it: it must not go on and
// keep its port.
func withParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
