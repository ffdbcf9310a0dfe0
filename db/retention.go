package db

import (
	"errors"
	"fmt"
	"strings"

	"gotycoon/db/filestore"
	"gotycoon/ulog"
)

// Every database that could not be brought back without the log has a ulog.Hold. That of a file follows its checkpoints (attach); that of a
// database in memory follows its snapshots, and belongs to whoever takes them; a Frozen has one of its own.

// RemoveLogFiles removes segments of the shared update log that hold nothing newer than upTo, and nothing newer than this call; the newest
// segment stays. Databases that still need them for their own recovery are checkpointed first, or get a snapshot (BeforeRemoval). What
// others still need is kept all the same, see ulog.Hold. Followers need nothing when the disk is full.
//
// Where a database cannot move on, the segments that nobody needs are removed nevertheless: a full disk may be the reason.
func (c *Catalog) RemoveLogFiles(upTo ulog.Stamp) error {
	upTo = min(upTo, c.log.Last())
	need, err := c.log.Removable(upTo)
	if err != nil || need == 0 {
		return err
	}
	err = c.moveOn(need)
	if c.gate.noDisk() {
		return errors.Join(err, c.log.ReclaimFiles(upTo))
	}
	return errors.Join(err, c.log.RemoveFiles(upTo))
}

// moveOn has everything up to a stamp put where a restart finds it without the log.
func (c *Catalog) moveOn(to ulog.Stamp) error {
	var failed error
	if c.beforeRemoval != nil {
		failed = c.beforeRemoval(to)
	}
	for _, d := range c.all {
		if d.file == nil || d.readOnly || d.hold.From() >= to {
			continue
		}
		d.reachEnd()
		if err := d.file.Checkpoint(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("checkpoint %s: %w", d.Path(), err))
		}
	}
	return failed
}

// BeforeRemoval has f called before files of the shared update log are removed that have updates up to a stamp. f has those who would need
// them move on, and their holds with them. Its error is reported, and does not stop the removal of what nobody needs. It is set before
// anybody uses the catalog.
func (c *Catalog) BeforeRemoval(f func(upTo ulog.Stamp) error) { c.beforeRemoval = f }

// attach lets the database's checkpoints follow the log, of which the file has everything up to a stamp.
func (d *DB) attach(log *logDir, has ulog.Stamp) {
	d.hold.Release()
	hold := log.Hold(d.Path(), has)
	d.hold = hold
	if !d.readOnly {
		d.file.Attach(log.Log, func(m filestore.Meta) { d.afterCheckpoint(log, hold, m) })
	}
}

// missing returns the error that says which updates files lack, and how to go on without them. A tool that has been told to do so does.
func (c *Catalog) missing(targets []target, reason error) error {
	var lacks, commands []string
	for _, t := range targets {
		lacks = append(lacks, fmt.Sprintf("%s (after the time stamp %d)", t.db.Path(), t.after))
		commands = append(commands, "kttimedmgr vacuum -onr "+t.db.Path())
	}
	text := fmt.Sprintf("updates that are not yet in %s may be missing from the log", strings.Join(lacks, ", "))
	if c.opts.Offline != nil && c.opts.Offline.Force {
		c.opts.Logger.Warn(fmt.Sprintf("%s: %v", text, reason))
		return nil
	}
	return fmt.Errorf("%s: %w. Put the files of the log back. To go on without these updates, while no server has the databases open: %s",
		text, reason, strings.Join(commands, "; "))
}
