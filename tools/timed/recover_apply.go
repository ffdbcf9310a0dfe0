package timed

import (
	"context"
	"errors"
	"fmt"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/db/record"
	"gotycoon/db/replay"
	"gotycoon/tools/show"
	"gotycoon/ulog"
)

const (
	lookEvery  = 1024    // updates between two looks at whether the command is to end
	relogBatch = 1 << 20 // bytes of updates that are logged together

	tellEvery = 50 // updates between two signs of progress

	leastRecord = ulog.RecordHead // bytes of a record in front of its message

	longestValue = record.MaxValueSize + record.XTSize // with the expiration time
)

// apply takes the updates from the log to the new file, up to the time stamp asked for.
func (r *recovery) apply(ctx context.Context, progress show.Progress) error {
	run := replay.Replay{
		Log:       r.source,
		Targets:   []replay.Target{{DBID: uint16(*r.dbid), Apply: r.one}},
		Until:     r.until,
		Gap:       r.passOverGap,
		Damage:    r.passOverDamage,
		Malformed: r.passOverMalformed,
		Entry: func(e ulog.Entry) error {
			if r.read > 0 && r.read%lookEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			r.count(e, progress)
			return nil
		},
	}
	if err := run.Run(); err != nil {
		return err
	}
	return r.relogRest()
}

// count takes note of an entry. Progress is told of many at a time.
func (r *recovery) count(e ulog.Entry, progress show.Progress) {
	r.read++
	r.last = max(r.last, e.Stamp)
	r.untold++
	r.untoldBytes += len(e.Message)
	if r.untold == tellEvery {
		r.tellProgress(progress)
	}
}

func (r *recovery) tellProgress(progress show.Progress) {
	progress.Done(r.untold, r.untoldBytes)
	r.untold, r.untoldBytes = 0, 0
}

// passOverDamage ends the log where it is damaged. Only the end of a segment that is too short for
// a record is passed over, as the original does: before its servers had checksums, a crash left
// such ends. Where nobody has asked for a part of the log, damage ends the command.
func (r *recovery) passOverDamage(err error, d *ulog.DamageError) error {
	if r.strict() {
		return err
	}
	if info, unknown := r.fs.Stat(d.File); unknown != nil || info.Size()-d.Offset >= leastRecord {
		r.damage = err
		return replay.ErrEnd
	}
	warnings{r.stderr}.print(fmt.Errorf("passed over the end of a log file: %w", d))
	return nil
}

// passOverGap goes on behind missing segments, as the original does, unless the result would be
// wrong without anybody having asked for it. Nothing is said where the log begins later than the
// caller did: -ts asks for what there is.
func (r *recovery) passOverGap(gap *ulog.GapError) error {
	if r.strict() && gap.From < r.until {
		return errGap
	}
	if gap.From > r.after {
		warnings{r.stderr}.print(gap)
	}
	return nil
}

// passOverMalformed tells of an entry that is no update, unless the entry is for another database.
func (r *recovery) passOverMalformed(e ulog.Entry, u ulog.Update, err error) error {
	if len(e.Message) < 4 || u.DBID == uint16(*r.dbid) {
		r.refuse(e.Message, err)
	}
	return nil
}

// one applies an update of the database, unless the server that made it is left out.
func (r *recovery) one(at ulog.Stamp, u ulog.Update) error {
	if !r.allSIDs && u.SID == uint16(*r.sid) {
		r.skipped++
		return nil
	}
	v := filestore.Version{Stamp: at, SID: u.SID}
	if u.Origin.Log != 0 {
		v.Stamp = u.Origin.Stamp
	}
	return r.store(u, v)
}

// store applies an update. The file remembers its version, if it keeps versions.
func (r *recovery) store(u ulog.Update, v filestore.Version) error {
	var err error
	lww := r.file.Meta().LWW
	switch u.Op {
	case ulog.OpSet:
		if err := storable(u); err != nil {
			r.refuse(nil, err)
			return nil
		}
		err = r.fresh.Set(u.Key, u.Value)
	case ulog.OpRemove:
		err = r.fresh.Remove(u.Key)
	case ulog.OpClear:
		err = r.fresh.Clear()
		r.cleared = v
	default:
		return nil // reserved by the original, and passed over by it
	}
	if lww && err == nil && u.Op != ulog.OpClear {
		err = r.fresh.Remember(u.Key, filestore.LastUpdate{Version: v, Removed: u.Op == ulog.OpRemove})
	}
	if err != nil {
		return err
	}
	r.applied++
	if r.relog != nil {
		return r.logAgain(u)
	}
	return nil
}

// refuse notes an update that cannot be applied; the others go on.
func (r *recovery) refuse(message []byte, err error) {
	if r.refused != nil {
		fmt.Fprintf(r.stderr, "%s: %v\n", program, r.refused)
	}
	call := "DB::recover"
	if message != nil && len(message) < 4 {
		call = "DBUpdateLogger::parse"
	}
	if errors.Is(err, ulog.ErrMalformed) {
		err = &dberr.Error{Code: dberr.InvalidOperation, Message: err.Error(), Err: err}
	}
	r.refused = r.failed(call, r.args[0], err)
}

// logAgain logs an update in the log of -ulog, under the ID of the server that made it. The new log
// does not name the log of origin: its readers would take the update for one that they have had.
func (r *recovery) logAgain(u ulog.Update) error {
	u.Origin = ulog.Origin{}
	before := r.relog.Bytes()
	at, err := r.relog.Append([]ulog.Update{u})
	if err == nil && before/relogBatch != r.relog.Bytes()/relogBatch {
		err = r.relog.Wait(at) // or all of it would stay in memory
	}
	return err
}

func (r *recovery) relogRest() error {
	if r.relog == nil {
		return nil
	}
	return r.relog.Wait(r.relog.Last())
}

// storable returns why a file can never hold a record.
func storable(u ulog.Update) error {
	switch {
	case len(u.Key) > filestore.MaxKeySize:
		return &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf("a key of %d bytes is too long for a database file", len(u.Key))}
	case len(u.Value) > longestValue:
		return &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf("a value of %d bytes is too long for a database file", len(u.Value))}
	}
	return nil
}
