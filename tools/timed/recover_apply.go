package timed

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/db/record"
	"gotycoon/tools/show"
	"gotycoon/ulog"
)

const (
	lookEvery  = 1024    // updates between two looks at whether the command is to end
	relogBatch = 1 << 20 // bytes of updates that are logged together

	tellEvery = 50 // updates between two signs of progress

	leastRecord = ulog.RecordHead // bytes of a record in front of its message

	longestValue = record.MaxValueSize + 5 // with the expiration time
)

// apply takes the updates from the log to the new file, up to the time stamp asked for.
func (r *recovery) apply(ctx context.Context, progress show.Progress) error {
	for {
		e, err := r.source.Next()
		var damage *ulog.DamageError
		var gap *ulog.GapError
		switch {
		case errors.As(err, &gap):
			if err := r.passOverGap(gap); err != nil {
				return err
			}
			continue
		case errors.Is(err, io.EOF), err == nil && e.Stamp > r.until:
			return r.relogRest()
		case errors.As(err, &damage):
			if r.strict() {
				return err
			}
			if r.passOver(damage) {
				continue
			}
			r.damage = err
			return r.relogRest()
		case err != nil:
			return err
		}
		r.count(e, progress)
		if err := r.one(e); err != nil {
			return err
		}
		if r.read%lookEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// count takes note of an update. Progress is told of many at a time.
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

// passOver goes on behind the end of a segment that is too short for a record, as the original does: before its servers had checksums,
// a crash left such ends.
func (r *recovery) passOver(d *ulog.DamageError) bool {
	info, err := r.fs.Stat(d.File)
	if err != nil || info.Size()-d.Offset >= leastRecord {
		return false
	}
	warnings{r.stderr}.print(fmt.Errorf("passed over the end of a log file: %w", d))
	r.source.SkipDamage()
	return true
}

// passOverGap goes on behind missing segments, as the original does, unless the result would be wrong without anybody having asked for it.
// Nothing is said where the log begins later than the caller did: -ts asks for what there is.
func (r *recovery) passOverGap(gap *ulog.GapError) error {
	if r.strict() && gap.From < r.until {
		return errGap
	}
	if gap.From > r.after {
		warnings{r.stderr}.print(gap)
	}
	r.source.SkipGap()
	return nil
}

// one applies an update if it is one of the database's.
func (r *recovery) one(e ulog.Entry) error {
	u, err := ulog.ParseMessage(e.Message)
	if err != nil && (len(e.Message) < 4 || u.DBID == uint16(*r.dbid)) {
		r.refuse(e.Message, err)
	}
	if err != nil || u.DBID != uint16(*r.dbid) {
		return nil
	}
	if !r.allSIDs && u.SID == uint16(*r.sid) {
		r.skipped++
		return nil
	}
	v := filestore.Version{Stamp: e.Stamp, SID: u.SID}
	if e.Origin.Log != 0 {
		v.Stamp = e.Origin.Stamp
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

// logAgain logs an update in the log of -ulog, as coming from where it came from.
func (r *recovery) logAgain(u ulog.Update) error {
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
