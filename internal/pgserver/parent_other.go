//go:build !linux

package pgserver

import "syscall"

// WithParent does nothing: only Linux ends a process with its parent.
func WithParent(*syscall.SysProcAttr) {}
