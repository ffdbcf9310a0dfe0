package db

import (
	"errors"
	"io"
	"os"

	"gotycoon/ulog"
)

// A start is decided before anything is changed. Files are open and logs are prepared then: locked, and looked at. decide asks every
// question whose answer can be that the start is refused, of all databases, so that a refusal because of the last of them leaves the first
// one, the logs and their directories as they were. What it goes on without is said here, too; recover only carries out what was decided.
//
// One refusal may come later: damage in the middle of a segment that is not the newest shows when the segment is replayed.

// decide returns why the start is refused.
func (c *Catalog) decide() error {
	var followers []*DB
	for _, d := range c.all {
		if d.file == nil {
			continue
		}
		followed, err := c.decideOn(d)
		if err != nil {
			return d.openError(err)
		}
		if followed {
			followers = append(followers, d)
		}
	}
	if c.log == nil {
		return nil
	}
	if err := c.lookForGaps(c.log, followers); err != nil {
		return &LogError{c.log.Dir(), err}
	}
	return nil
}

// decideOn decides about one database file. It reports whether the file will be replayed from the shared log.
func (c *Catalog) decideOn(d *DB) (followed bool, err error) {
	if err := c.findOwnLog(d); err != nil {
		return false, err
	}
	if err := c.inspect(d); err != nil {
		return false, err
	}
	taken, err := c.decidePrivate(d)
	if err != nil || c.log == nil || taken {
		return false, err
	}
	m := d.file.Meta()
	if belongs(m, c.log) {
		return true, nil
	}
	if m.Merging != nil && !d.readOnly && d.bringFrom == "" {
		return false, errHalfMerged(m)
	}
	return false, nil
}

// decidePrivate prepares the private log beside a file, where there is one or will be, and decides about it. It reports whether the file is
// brought up to date from it.
func (c *Catalog) decidePrivate(d *DB) (taken bool, err error) {
	dir := d.Path() + privateSuffix
	_, err = c.opts.FS.Stat(dir)
	if d.readOnly || errors.Is(err, os.ErrNotExist) && c.log != nil {
		return false, nil
	}
	log, err := c.prepareLog(dir, privateLimit)
	if err != nil {
		return false, err
	}
	log.private, d.private = true, log
	if c.leftBehind(d, log) {
		return false, nil
	}
	m := d.file.Meta()
	if belongs(m, log) {
		return true, c.lookForGaps(log, []*DB{d})
	}
	if log.restored(m) {
		if err := c.olderCopy(d, m, log); err != nil {
			return false, err
		}
	}
	switch {
	case c.log != nil:
		return false, nil
	case m.Merging != nil && d.bringFrom == "":
		return false, errHalfMerged(m)
	}
	return false, c.neverTaken(d, m, log)
}

// lookForGaps returns an error where a log lacks updates that files need of it. A log whose segments seem to be whole is not read for this.
func (c *Catalog) lookForGaps(log *logDir, files []*DB) error {
	targets, from := targetsOf(log, files)
	if len(targets) == 0 || c.opts.Offline != nil && c.opts.Offline.Force {
		return nil
	}
	r, err := ulog.OpenReader(c.opts.FS, log.Dir(), from, ulog.ReaderOptions{})
	if err != nil {
		return err
	}
	err = r.Lost()
	for err == nil && !log.ready.Whole() {
		_, err = r.Next()
	}
	if err == nil || errors.Is(err, io.EOF) {
		return r.Close()
	}
	if _, gap := errors.AsType[*ulog.GapError](err); gap {
		err = c.missing(targets, err)
	} else if _, damage := errors.AsType[*ulog.DamageError](err); damage {
		err = c.missing(targets, err)
	}
	return errors.Join(err, r.Close())
}

// targetsOf returns the files that lack something of a log, and the stamp from which on the log has to be read.
func targetsOf(log *logDir, files []*DB) (targets []target, from ulog.Stamp) {
	for _, d := range files {
		m := d.file.Meta()
		if m.Stamp >= log.Last() {
			continue
		}
		if targets == nil {
			from = m.Stamp
		}
		targets = append(targets, target{d, m.DBID, m.Stamp})
		from = min(from, m.Stamp)
	}
	return targets, from
}
