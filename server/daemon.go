package server

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// daemonMark is in the environment of the detached process only, and removed from it before anything else is started.
const daemonMark = "KTSERVER_DETACHED"

// enterDaemon reports whether this is the detached process, and completes its detachment.
func enterDaemon() bool {
	if os.Getenv(daemonMark) == "" {
		return false
	}
	os.Unsetenv(daemonMark)
	syscall.Umask(0)
	return true
}

// launchDaemon runs this program again with the same arguments, in a session of its own, in the root directory and
// without standard streams: a Go process cannot fork itself. It returns the exit code of the launcher.
func launchDaemon(stderr io.Writer) int {
	if err := startDetached(); err != nil {
		fmt.Fprintf(stderr, "%s: switching to a daemon: %v\n", Program, err)
		return 1
	}
	return 0
}

func startDetached() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	child, err := os.StartProcess(program, os.Args, &os.ProcAttr{
		Dir:   "/",
		Env:   append(os.Environ(), daemonMark+"=1"),
		Files: []*os.File{null, null, null},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	return child.Release()
}
