// Package replay brings the updates of a log to those who lack them: to database files at a start,
// to databases in memory behind their snapshots, and to the file that `kttimedmgr recover` makes.
//
// The three read the same log in the same way and differ only in what they do where the log is not
// whole. So the reading is here once, and the policy is in the fields of a Replay:
//
//	                    files at a start       behind snapshots   kttimedmgr recover
//	a gap               refused, or passed     refused            passed, unless the result would
//	                    over with a warning                       be wrong unasked
//	damage              refused                refused            ends the log early
//	a malformed update  refused                refused            told, and left out
package replay

import (
	"errors"
	"io"

	"gotycoon/ulog"
)

// Replay reads a log and gives its updates to targets. It belongs to one goroutine.
type Replay struct {
	Log     *ulog.Reader
	Targets []Target
	Until   ulog.Stamp // updates behind this stamp are left out; 0: none are

	// Gap decides where updates are missing: nil goes on behind the gap, any other error ends the
	// replay. Without the function a gap is an error of the log.
	Gap func(gap *ulog.GapError) error

	// Damage decides about a part of the log that cannot be read; err is the whole error of the
	// reader. nil goes on behind the damage, ErrEnd ends the replay as if the log ended there, any
	// other error ends it with that error. Without the function damage is an error of the log.
	Damage func(err error, damage *ulog.DamageError) error

	// Malformed decides about an entry that is no update: nil leaves the entry out. u has what could
	// be read of the update. Without the function the entry is an error of the log.
	Malformed func(e ulog.Entry, u ulog.Update, err error) error

	// Entry is told of each entry before the entry is applied, whatever database it is for. An
	// error ends the replay. It may be nil.
	Entry func(e ulog.Entry) error

	// Failed gives an error of the log its words; at is the stamp of the entry, 0 where there is
	// none. Without the function the error is returned as it is.
	Failed func(at ulog.Stamp, err error) error
}

// Target is a database that lacks updates.
type Target struct {
	AnyDB bool       // the updates of all databases are for it
	DBID  uint16     // number of the database in the log
	After ulog.Stamp // the database has everything up to here

	// Apply stores an update. An error ends the replay and is returned as it is.
	Apply func(at ulog.Stamp, u ulog.Update) error
}

// ErrEnd is returned by Replay.Damage to end the replay without an error.
var ErrEnd = errors.New("the replay ends here")

// Run gives every update to the targets that lack it, in the order of the log, up to Until or the
// end of the log.
func (r *Replay) Run() error {
	for {
		e, err := r.Log.Next()
		switch {
		case errors.Is(err, io.EOF), err == nil && r.Until != 0 && e.Stamp > r.Until:
			return nil
		case err == nil:
			err = r.one(e)
		default:
			err = r.passOver(err)
		}
		if errors.Is(err, ErrEnd) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// passOver goes on behind a gap or damage where the policy says so.
func (r *Replay) passOver(err error) error {
	if gap, ok := errors.AsType[*ulog.GapError](err); ok && r.Gap != nil {
		if err := r.Gap(gap); err != nil {
			return err
		}
		r.Log.SkipGap()
		return nil
	}
	if damage, ok := errors.AsType[*ulog.DamageError](err); ok && r.Damage != nil {
		if err := r.Damage(err, damage); err != nil {
			return err
		}
		r.Log.SkipDamage()
		return nil
	}
	return r.failed(0, err)
}

// one gives an update to the targets that lack it.
func (r *Replay) one(e ulog.Entry) error {
	if r.Entry != nil {
		if err := r.Entry(e); err != nil {
			return err
		}
	}
	u, err := ulog.ParseMessage(e.Message)
	if err != nil && r.Malformed != nil {
		return r.Malformed(e, u, err)
	}
	if err != nil {
		return r.failed(e.Stamp, err)
	}
	u.Origin = e.Origin
	for i := range r.Targets {
		t := &r.Targets[i]
		if !t.AnyDB && t.DBID != u.DBID || e.Stamp <= t.After {
			continue
		}
		if err := t.Apply(e.Stamp, u); err != nil {
			return err
		}
	}
	return nil
}

func (r *Replay) failed(at ulog.Stamp, err error) error {
	if r.Failed == nil {
		return err
	}
	return r.Failed(at, err)
}
