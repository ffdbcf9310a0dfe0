package db

import (
	"bytes"
	"fmt"

	"gotycoon/db/dberr"
	"gotycoon/ulog"
)

// The position of a follower.
//
// # The problem
//
// A server that follows a master must know after a crash where to go on. If it goes on too far, it
// misses updates for ever. If it goes on too early, old updates of the master come again and
// replace what clients have stored on this server since. And a crash may take the end of the log,
// or leave a file that is behind its log, or both.
//
// # The rule
//
// The position is stored with the data that it describes, in the same write: each batch of updates
// (DB.Replicate) carries the position into the log and, with the next checkpoint, into the database
// file. Between updates the follower notes it alone (Catalog.Remember). So whatever a crash takes,
// the position that is left belongs to the data that is left. The position itself is bytes to this
// package.
//
// Log and file both tell a position, and after a crash the two may differ. So every note of a
// position has a place in one order: the stamp that the log gave the note. The greater stamp wins.
//
//	log    … u7  n8(position 1)  u9  n10(position 2)  u11 …
//	file   Stamp 9, PositionAt 8
//	       the note in the log is newer: position 2, after the replay of u11
//	file   Stamp 11, PositionAt 10, the log ends with u9
//	       impossible: the checkpoint has synced the log up to n10 before it wrote the file
//	file   Stamp 11, PositionAt 8
//	       the note in the log is newer: n10 came with updates of another database
//
// filestore.(*Store).SetPosition takes a note only if the note is newer than the file's own, so no
// call in this package can move a position back.
//
// # A file that changes its log
//
// A file that comes from another log knows notes whose stamps mean nothing in the new log. It gets
// PositionAt as if it had seen every note that is there (opening.adopt). And the log must forget
// its own position (opening.disown): a new segment repeats the last note with a greater stamp, and
// after a crash that note would be taken for one about the file.
//
// # What was rejected
//
// A file of its own for the position, as the original's RTS file, is written at another moment than
// the data: after a crash it is ahead of the data or behind. It is still written, for people and
// for tools of the original, but what counts is the note in the log.

// Remember notes in each log, and with each database file, how far a master has been followed:
// every update that was given to Replicate before is covered. The caller makes the note durable
// with SyncLogs.
func (c *Catalog) Remember(state []byte) error {
	for _, l := range c.logs {
		index, ok := c.indexOf(l)
		if !ok {
			continue
		}
		at, err := l.AppendReplicated(nil, &ulog.Position{DBID: index, State: state})
		if err != nil {
			return &dberr.LogError{Dir: l.Dir(), Err: err}
		}
		for _, d := range c.all {
			if d.log == l.Log && d.file != nil && !d.readOnly {
				d.file.SetPosition(state, at)
			}
		}
	}
	return nil
}

// indexOf returns the index under which a note for all databases goes into a log. ok is false for
// the log of no database.
func (c *Catalog) indexOf(l *logDir) (index uint16, ok bool) {
	if !l.private {
		return 0, true
	}
	for _, d := range c.all {
		if d.log == l.Log {
			return d.index, true
		}
	}
	return 0, false
}

// disown makes a log forget its position, durably, before the log goes on with a file that does not
// have every update up to the position: a new file, an older copy, or a file from another log.
// After a crash the position would be taken for the file's. The files that do have these updates
// are checkpointed first, so they know the position themselves.
func (c *opening) disown(d *DB, log *logDir) error {
	state := log.remembers()
	if d.recovery.followed || state == nil || bytes.Equal(state, d.file.Followed()) {
		return nil
	}
	for _, other := range c.all {
		if other == d || other.file == nil || other.readOnly || !other.recovery.followed || log.private {
			continue
		}
		if err := other.file.Checkpoint(); err != nil {
			return fmt.Errorf("checkpoint %s: %w", other.path(), err)
		}
	}
	at, err := log.AppendReplicated(nil, &ulog.Position{DBID: d.index, State: forgotten})
	if err == nil {
		err = log.SyncTo(at)
	}
	if err != nil {
		return &dberr.LogError{Dir: log.Dir(), Err: err}
	}
	return nil
}

// recallInMemory finds the positions of databases without a file. It comes before any file makes
// the log forget.
func (c *opening) recallInMemory() {
	for _, d := range c.all {
		if d.file == nil && c.log != nil && !d.readOnly {
			d.remembered = c.log.remembers()
		}
	}
}

// recallFiles finds the positions of database files.
func (c *opening) recallFiles() {
	for _, d := range c.all {
		if d.file != nil && !d.readOnly {
			d.remembered = d.file.Followed()
		}
	}
}
