package db

import (
	"bytes"
	"fmt"

	"gotycoon/ulog"
)

// A server that follows a master remembers how far: with each batch of updates (DB.Follow), and at times without any (Catalog.Remember).
// What it remembers is bytes to this package, and is where the updates are that it speaks of: in the log, and in a database file. So after
// a crash it is what belongs to the data, whatever that crash has taken.

// Remember notes in each log, and with each database file, how far a master has been followed: every update that was handed to Follow
// before is covered. The caller makes it safe with SyncLogs.
func (c *Catalog) Remember(state []byte) error {
	for _, l := range c.logs {
		index, ok := c.indexOf(l)
		if !ok {
			continue
		}
		if _, err := l.AppendFollow(nil, &ulog.Follow{DBID: index, State: state}); err != nil {
			return &LogError{l.Dir(), err}
		}
	}
	for _, d := range c.all {
		if d.file != nil && !d.readOnly {
			d.commitMu.Lock()
			d.file.SetFollow(state)
			d.commitMu.Unlock()
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

// remembers returns what a log remembers, nil where that is nothing.
func (l *logDir) remembers() []byte {
	if state := l.Remembered(); !bytes.Equal(state, forgotten) {
		return state
	}
	return nil
}

// disown makes a log forget, on the disk, what it remembers, before it goes on with a file that does not have everything up to there: one
// that is new, an older copy, or from another log. It would be taken for what belongs to the file after a crash. The files that have
// it remember it themselves from now on.
func (c *Catalog) disown(d *DB, log *logDir) error {
	state := log.remembers()
	if d.followed || state == nil || bytes.Equal(state, d.own()) {
		return nil
	}
	for _, other := range c.all {
		if other == d || other.file == nil || other.readOnly || !other.followed || log.private {
			continue
		}
		other.file.SetFollow(state)
		if err := other.file.Checkpoint(); err != nil {
			return fmt.Errorf("checkpoint %s: %w", other.Path(), err)
		}
	}
	at, err := log.AppendFollow(nil, &ulog.Follow{DBID: d.index, State: forgotten})
	if err == nil {
		err = log.SyncTo(at)
	}
	if err != nil {
		return &LogError{log.Dir(), err}
	}
	return nil
}

// own is what goes with the data of a file that is not a database of its log yet.
func (d *DB) own() []byte {
	if d.remembered != nil {
		return d.remembered
	}
	return d.file.Meta().Follow
}

// recallFrom takes over what a log remembers that has been replayed into a database file.
func (d *DB) recallFrom(log *logDir) {
	if state := log.remembers(); state != nil && !d.readOnly {
		d.file.SetFollow(state)
		d.remembered = state
	}
}

// recall finds out what the databases remember that no replay has told.
func (c *Catalog) recall() {
	for _, d := range c.all {
		switch {
		case d.remembered != nil || d.readOnly:
		case d.file == nil && c.log != nil:
			d.remembered = c.log.remembers()
		case d.file == nil:
		case d.followed && d.shared && c.log.remembers() != nil: // nothing was to be replayed
			d.remembered = c.log.remembers()
		default:
			d.remembered = d.file.Meta().Follow
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
		return ErrReadOnly
	}
	return d.throttle()
}
