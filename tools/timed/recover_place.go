package timed

import (
	"fmt"
	"path/filepath"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/internal/vfs"
)

// place finds out where the file stands in the log, and what must not be.
func (r *recovery) place() error {
	m := r.file.Meta()
	r.own = r.belongs(m)
	r.allSIDs = !r.flags.Changed("sid") && (r.own || r.partial)
	if r.own && r.flags.Changed("dbid") && uint16(*r.dbid) != m.DBID {
		r.own = false // another database's updates on top: the user knows what for
	}
	if r.own && !r.flags.Changed("dbid") {
		*r.dbid = int64(m.DBID)
	}
	if r.given || !r.own {
		return r.mustBeWhole(m)
	}
	r.after = m.Stamp
	if r.partial && r.until < m.Stamp {
		return r.misplaced("the file is complete up to the time stamp %s already, which is later: begin with an older copy, or with an "+
			"empty file", moment(m.Stamp))
	}
	return r.mustBeWhole(m)
}

// mustBeWhole refuses a file that holds parts of later updates, unless these follow.
func (r *recovery) mustBeWhole(m filestore.Meta) error {
	if m.Merging == nil || r.own && !r.partial && r.after <= m.Stamp {
		return nil
	}
	return r.misplaced("the last process stopped within a checkpoint, so the file already holds some updates after the time stamp %s: "+
		"begin with a backup, or with an empty file", moment(m.Stamp))
}

func (r *recovery) misplaced(format string, args ...any) error {
	return r.failed("DB::recover", r.args[0], &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf(format, args...)})
}

// description is what the new file says about itself.
//
// With everything in it that the log has, it belongs to the log: a server goes on from there. After
// --until, and when the log is damaged, it belongs to no log: a server takes it as it is, and must
// not bring in what has been left out.
func (r *recovery) description() (filestore.Meta, error) {
	m := r.file.Meta()
	m.Clean, m.Merging, m.MergeEpoch = true, nil, 0
	m.Epoch++
	m.Checkpoints++
	// before that there was nothing to tell it by
	m.Persistent = m.Persistent || r.noXT && m.Count == 0 && r.file.Runs() == 0
	m.Outlive()
	if last := (filestore.Version{Stamp: m.ClearedAt, SID: m.ClearedBy}); m.LWW && last.Less(r.cleared) {
		m.ClearedAt, m.ClearedBy, m.Base = r.cleared.Stamp, r.cleared.SID, 0
	}
	m.Stamp = max(r.last, r.after)
	if r.own {
		m.Stamp = max(m.Stamp, r.file.Meta().Stamp)
	}
	m.LogID, m.LogDir, m.DBID = r.logID, r.dir, uint16(*r.dbid)
	if dir, err := filepath.Abs(r.dir); err == nil {
		m.LogDir = dir
	}
	switch {
	case r.relog != nil:
		m.LogID, m.LogDir, m.Stamp = filestore.ID(r.relog.ID()), r.relog.Dir(), r.relog.Last()
	case r.partial:
		m.LogID, m.Stamp = filestore.ID{}, min(m.Stamp, r.until)
	case r.damage != nil:
		m.LogID = filestore.ID{}
	default:
		epoch, err := ledgerEpoch(r.fs, r.dir, m.ID)
		m.Epoch = max(m.Epoch, epoch+1)
		return m, err
	}
	return m, nil
}

// ledgerEpoch returns the newest epoch that a log's directory knows of a database, 0 for none. A
// file with an older one would count as a copy that somebody has put in place. The ledger's format
// is told in db/logdir.go.
func ledgerEpoch(fs vfs.FS, dir string, id filestore.ID) (uint64, error) {
	ledger, err := filestore.ReadLedger(fs, dir)
	if err != nil {
		return 0, fmt.Errorf("read the checkpoints noted in %s: %w", dir, err)
	}
	return ledger[id.String()].Epoch, nil
}

// commit puts the new file in place. The log that was written is made safe first.
func (r *recovery) commit() error {
	if r.relog != nil {
		if err := r.relog.SyncTo(r.relog.Last()); err != nil {
			return err
		}
	}
	m, err := r.description()
	if err != nil {
		return err
	}
	r.last = m.Stamp
	return r.fresh.Commit(m)
}

// tell says what people have to know. Scripts that recover as with the original get nothing to
// read.
func (r *recovery) tell() {
	_ = r.out.Flush() // what was printed comes first; an error comes back from the last flush
	if r.skipped > 0 && r.applied == 0 {
		fmt.Fprintf(r.stderr, "%s: warning: all %d updates of the database were left out, because they come from server %d: -sid with another "+
			"number brings them in\n", program, r.skipped, *r.sid)
	}
	if r.damage != nil {
		fmt.Fprintf(r.stderr, "%s: warning: the log ends early: what is behind the damage is not in the file\n", program)
	}
	if !r.own && !r.partial && r.damage == nil {
		return
	}
	stamp := r.last
	if r.read == 0 && !r.partial {
		stamp = r.after
	}
	fmt.Fprintf(r.stderr, "%s: %s is complete up to the time stamp %s\n", program, r.args[0], moment(stamp))
	if r.partial {
		fmt.Fprintf(r.stderr, "%s: a server takes it as it is. To go on from here later: recover -ts %d\n", program, min(r.until, max(stamp, r.after)))
	}
}

var errGap = &dberr.Error{Code: dberr.BrokenFile, Message: "the log does not reach back to where the file ends: some of its files were removed or are " +
	"damaged. Put them back, or give -ts with the time stamp to begin after"}

// strict tells whether updates that are missing from the log make the result wrong without anybody
// having asked for it.
func (r *recovery) strict() bool { return !r.given && (r.own || r.partial) }
