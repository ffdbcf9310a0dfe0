package server

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"gotycoon/db"
)

// This file is the process as the system sees it: detached from the terminal, with a PID file, and
// under a service manager.

// daemonMark is in the environment of the detached process only, and removed from it before
// anything else is started.
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

// launchDaemon runs this program again with the same arguments, in a session of its own, in the
// root directory and without standard streams: a Go process cannot fork itself.
func launchDaemon() error {
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

// daemonNotes tell what nobody will find out about a daemon.
func (c *Config) daemonNotes() (notes []string) {
	if c.LogPath == "" || c.LogPath == "-" {
		notes = append(notes, "-dmn without -log FILE: what the daemon has to say is lost, also why it does not start")
	}
	if c.PIDPath == "" {
		notes = append(notes, "-dmn without -pid FILE: nothing keeps the process ID, which a script needs to stop the daemon")
	}
	return notes
}

// pidFile holds the process ID for scripts that send signals.
type pidFile struct {
	path    string // empty: there is none
	log     logger
	written bool
}

// write writes the file. A server that cannot write it goes on: its users would rather have the
// server than the file.
func (f *pidFile) write(pid int) {
	if f.path == "" {
		return
	}
	f.written = true
	if err := os.WriteFile(f.path, []byte(strconv.Itoa(pid)+"\n"), 0o644); err != nil {
		f.log.error("writing the process ID: %v", err)
	}
}

// remove removes the file, unless this process has not come to write it.
func (f *pidFile) remove() {
	if !f.written {
		return
	}
	if err := os.Remove(f.path); err != nil && !os.IsNotExist(err) {
		f.log.error("removing the process ID: %v", err)
	}
}

// manager is the service manager that has started the process (sd_notify). There is none without
// the variable NOTIFY_SOCKET.
type manager struct{ log logger }

// tell passes a state of the server to the manager.
func (m manager) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.error("telling the service manager failed: %v", err)
	}
}

// watchdogEvery is how often the manager wants to hear from the process, with room for a late
// answer; 0: never.
func (m manager) watchdogEvery() time.Duration {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		m.log.error("reading the limit of the service manager's watchdog failed: %v", err)
		return 0
	}
	return limit / 3
}

// feedWatchdog tells the manager that the server works: it does when a record of each database can
// be looked up. A server that hangs is ended by the manager, and started again.
func (m manager) feedWatchdog(c *db.Catalog) {
	for i := range c.Len() {
		var owed db.Pending // a slow disk is no reason to end the server
		if _, _, err := c.DB(i).Check(&owed, nil); err != nil && c.Err() != nil {
			return
		}
	}
	m.tell(daemon.SdNotifyWatchdog)
}
