//go:build !linux

package pgserver

import "syscall"

// withParent does nothing: only Linux ends a process with its parent.
func withParent(*syscall.SysProcAttr) {}
