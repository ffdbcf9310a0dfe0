package db

import (
	"bytes"
	"fmt"

	"gotycoon/db/dberr"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// A server that follows a master remembers how far: with each batch of updates (DB.Replicate), and at times without any (Catalog.Remember).
// What it remembers is bytes to this package, and is where the updates are that it speaks of: in the log, and in a database file. So after
// a crash it is what belongs to the data, whatever that crash has taken.
//
// # One order
//
// Log and file both tell a position, and after a crash they may differ. Older updates of the master would come again if the older position
// won, and would replace what clients have stored here since. So every note of a position has a place in one order: its stamp in the log.
//
//	log    … u7  n8(position 1)  u9  n10(position 2)  u11 …
//	file   Stamp 9, PositionAt 8                      the log's note is newer: position 2, after the replay of u11
//	file   Stamp 11, PositionAt 10, log ends with u9  cannot be: the checkpoint has synced the log up to n10
//	file   Stamp 11, PositionAt 8                     the log's note is newer: n10 came with updates of another database
//
// filestore.(*Store).SetPosition takes a note only if it is newer than the one that the file has, so nothing here can move a position back. A
// file that comes to a log from elsewhere gets PositionAt as if it had all notes that there are (adopt), and the log forgets its own (disown), because
// a new segment repeats it with a greater stamp.

// Remember notes in each log, and with each database file, how far a master has been followed: every update that was handed to Replicate
// before is covered. The caller makes it safe with SyncLogs.
func (c *Catalog) Remember(state []byte) error {
	for _, l := range c.logs {
		index, ok := c.indexOf(l)
		if !ok {
			continue
		}
		at, err := l.AppendReplicated(nil, &ulog.Position{DBID: index, State: state})
		if err != nil {
			return &LogError{l.Dir(), err}
		}
		for _, d := range c.all {
			if d.log == l.Log && d.file != nil && !d.readOnly {
				d.file.SetPosition(state, at)
			}
		}
	}
	return nil
}

// indexOf returns the index under which a note for all databases goes into a log. ok is false for the log of no database.
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

// Remembers tells whether the database has a place where it can remember how far a master was followed.
func (d *DB) Remembers() bool { return !d.readOnly && (d.file != nil || d.log != nil) }

// Remembered returns what the database remembered when it was opened: the state that was given with the last of the updates it has, or
// later. It is nil where there is none.
func (d *DB) Remembered() []byte { return d.remembered }

// forgotten is remembered by a log that has forgotten: the files know better. It is no state that a caller of Remember has.
var forgotten = []byte{0}

// known reports whether a log remembers something.
func known(state []byte) bool { return len(state) > 0 && !bytes.Equal(state, forgotten) }

// remembers returns what a log remembers, nil where that is nothing.
func (l *logDir) remembers() []byte {
	if state, _ := l.Remembered(); known(state) {
		return state
	}
	return nil
}

// disown makes a log forget, on the disk, what it remembers, before it goes on with a file that does not have everything up to there: one
// that is new, an older copy, or from another log. It would be taken for what belongs to the file after a crash. The files that have
// it remember it themselves from now on.
func (c *Catalog) disown(d *DB, log *logDir) error {
	state := log.remembers()
	if d.followed || state == nil || bytes.Equal(state, d.file.Followed()) {
		return nil
	}
	for _, other := range c.all {
		if other == d || other.file == nil || other.readOnly || !other.followed || log.private {
			continue
		}
		if err := other.file.Checkpoint(); err != nil {
			return fmt.Errorf("checkpoint %s: %w", other.Path(), err)
		}
	}
	at, err := log.AppendReplicated(nil, &ulog.Position{DBID: d.index, State: forgotten})
	if err == nil {
		err = log.SyncTo(at)
	}
	if err != nil {
		return &LogError{log.Dir(), err}
	}
	return nil
}

// recallFrom takes over what the log of a database file remembers, if that is newer than what the file does. The file has every update of
// the log.
func (d *DB) recallFrom(log *logDir) {
	if state, at := log.Remembered(); known(state) && !d.readOnly {
		d.file.SetPosition(state, at)
	}
}

// recallFromDir is recallFrom for a log that is only read.
func (d *DB) recallFromDir(fs vfs.FS, dir string) error {
	state, at, err := ulog.RememberedIn(fs, dir)
	if err == nil && known(state) {
		d.file.SetPosition(state, at)
	}
	return err
}

// recallInMemory finds out what databases without a file remember. It comes before any file makes their log forget.
func (c *Catalog) recallInMemory() {
	for _, d := range c.all {
		if d.file == nil && c.log != nil && !d.readOnly {
			d.remembered = c.log.remembers()
		}
	}
}

// recallFiles finds out what database files remember.
func (c *Catalog) recallFiles() {
	for _, d := range c.all {
		if d.file != nil && !d.readOnly {
			d.remembered = d.file.Followed()
		}
	}
}

// SetGuarded makes the databases refuse updates of clients as if they had been opened read-only, or ends that. Updates of a master are
// stored all the same. The services' database is not concerned.
//
// When SetGuarded(true) has returned nil, no update of a client is appended to a log any more, and all that were are as safe as the mode
// promises: a follower that has received everything up to Log().Last() lacks nothing that was or will be acknowledged. Operations that wait,
// for a transaction, the disk, or a key, are refused when their turn comes (appendAndApply), and so is the commit of a transaction.
// SetGuarded waits for none of them, only for what is being appended at the moment, and for the log.
func (c *Catalog) SetGuarded(on bool) error {
	c.guard.Store(on)
	if !on {
		return nil
	}
	for _, d := range c.dbs {
		d.commitMu.Lock() // whoever has not seen the flag has appended
		d.commitMu.Unlock()
	}
	for _, l := range c.logs {
		if err := l.Wait(l.Last()); err != nil {
			return &LogError{l.Dir(), err}
		}
	}
	return nil
}

// Guarded tells what SetGuarded has set last.
func (c *Catalog) Guarded() bool { return c.guard.Load() }

// refuses tells whether clients may not update.
func (d *DB) refuses() bool { return d.readOnly || d.guard != nil && d.guard.Load() }

// clearable returns why the database cannot be cleared now, by a client or by a master.
func (d *DB) clearable(client bool) error {
	if client {
		return d.writable(nil)
	}
	if d.readOnly {
		return dberr.ErrReadOnly
	}
	return d.throttle()
}
