package server

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"gotycoon/db"
	"gotycoon/internal/klog"
	"gotycoon/internal/procinfo"
	"gotycoon/script"
)

// This file has what a server with the configuration would go on with, but hardly as it is meant:
// the warnings. A server of the original kind starts with a broken script, too.

// resolveTime is how long a name may take to be resolved.
const resolveTime = 5 * time.Second

// values finds warnings.
func (e *examiner) values() {
	c := e.cfg
	e.warnings = append(e.warnings, c.doubts()...)
	if c.Threads > MaxThreads { // a start says nothing: the recorded log of such a start has no line for it
		e.warn("-th %d: the server takes no more than %d", c.Threads, MaxThreads)
	}
	if _, err := os.Stat(c.Script.Path); err == nil { // a file that is not there is an error
		if err := script.Check(c.Script.Path); err != nil {
			e.warn("-scr: %v: the server starts, but no client can call the script", err)
		}
	}
	if total := procinfo.MemoryLimit(); total > 0 && c.Limits.Memory > total {
		e.warn("-memory: %d MiB are more than the %d MiB that this machine, or the control group, has: the limit is never reached",
			c.Limits.Memory/mib, total/mib)
	}
	if c.Daemon {
		for _, note := range c.daemonNotes() {
			e.warn("%s", note)
		}
	}
	e.resolves("-mhost", c.MasterHost)
	e.certificates()
	e.snapshots()
}

// resolves looks for the address of another server. Another machine may know the name later.
func (e *examiner) resolves(option, host string) {
	if host == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), resolveTime)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		e.warn("%s: the address of %s is not found now: %v", option, host, err)
	}
}

// certificates looks whether the certificates are valid, and for how long. Files that cannot be
// used are errors already.
func (e *examiner) certificates() {
	t, now := &e.cfg.TLS, time.Now()
	var all certificates
	if t.on() {
		if files, err := t.server(nil); err == nil {
			all = append(all, portsCertificate(t, files))
		}
	}
	if t.toMaster() {
		if files, err := t.client(nil); err == nil {
			all = append(all, masterCertificate(t, files.Expires))
		}
	}
	for _, one := range all.alarms(now) {
		e.warn("%s", one.text)
	}
}

// snapshots looks for snapshots that a start could not load.
func (e *examiner) snapshots() {
	c := e.cfg
	if c.Snapshots.Dir == "" {
		return
	}
	if _, err := os.Stat(c.Snapshots.Dir); errors.Is(err, os.ErrNotExist) {
		return
	}
	silent := newLogger(klog.Original, os.Stderr, klog.LevelSilent)
	r := restorer{
		s:    newSnapshots(c.Snapshots, len(c.Databases), newPace(), func() bool { return false }, silent),
		opts: db.Options{LogDir: c.UpdateLog},
	}
	if _, err := r.find(); err != nil {
		e.wrong = append(e.wrong, err)
	}
}
