package db

import (
	"errors"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/ordered"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// SyncLog returns when every update made so far would survive a power cut, in every mode. A
// database in memory without a log has no such updates, and SyncLog returns at once.
func (d *core) SyncLog() error {
	if d.log == nil {
		return nil
	}
	return systemError(d.log.SyncTo(d.log.Last()))
}

// Logged returns the time of the newest update in the database's log. That time only grows, across
// restarts too, and is not before the times that other servers gave to their updates. ok is false
// where the database has no log.
func (d *core) Logged() (at time.Time, ok bool) {
	if d.log == nil {
		return at, false
	}
	return d.log.Last().Time(), true
}

const nanosPerMilli = 1_000_000

// Synchronize puts everything into the database's file and, with hard, on the disk. Then it calls
// post with the path and a time stamp: the file is complete up to the stamp and stays as it is
// until post returns, and so does the log behind the stamp, while clients go on. An error of post
// is returned as ErrPostproc. For a database in memory Synchronize only calls post.
//
// What an engine has acknowledged is durable already. With post, a file is made of what a database
// in an engine has at one moment, and removed when post returns, see withFile.
func (d *DB) Synchronize(hard bool, post func(path string, at ulog.Stamp) error) error {
	if d.shared != nil {
		if post == nil {
			return nil
		}
		return d.shared.withFile(d.tick, post)
	}
	if hard && d.log != nil {
		if err := d.log.SyncTo(d.log.Last()); err != nil {
			return systemError(err)
		}
	}
	var hold *ulog.Hold
	if post != nil && d.sharesLog {
		hold = d.log.Hold(ulog.Holder{Kind: ulog.Copy, What: "a command of synchronize on " + d.path() + " under way"}, d.log.Last())
		defer hold.Release()
	}
	at := d.tick()
	hold.Advance(at)
	// whoever goes on from the stamp must miss nothing: no update may have it, also after a crash
	if post != nil && d.sharesLog {
		if err := d.log.SyncTo(at); err != nil {
			return systemError(err)
		}
	}
	run := func() error {
		if post == nil {
			return nil
		}
		if err := post(d.path(), at); err != nil {
			return errors.Join(dberr.ErrPostproc, err)
		}
		return nil
	}
	switch {
	case d.file == nil || d.readOnly:
		return run()
	case post == nil:
		return systemError(d.file.Checkpoint())
	}
	return systemError(d.file.Hold(run))
}

// Stamp returns a new time stamp: every earlier update that was made here is seen by those who read
// from now on.
func (d *core) Stamp() ulog.Stamp {
	d.commitMu.Lock()
	defer d.commitMu.Unlock()
	return d.tickLocked()
}

// reachEnd makes the next checkpoint say that the file is complete up to the end of the shared log.
// Without it, a file whose database was not updated for long would seem to need everything that the
// log has had since, and would know an older position of its master than the log does.
func (d *core) reachEnd() {
	if d.file == nil || d.readOnly || !d.sharesLog || d.log.Err() != nil {
		return
	}
	d.commitMu.Lock()
	defer d.commitMu.Unlock()
	d.file.Apply(d.log.Last(), nil)
	if state, at := d.log.Remembered(); known(state) {
		d.file.SetPosition(state, at)
	}
}

// checkpointIfBehind asks for a checkpoint when a crash now would mean replaying more than two
// overlays' worth of log.
func (d *core) checkpointIfBehind(limit int64) {
	if d.file == nil || d.log == nil || d.readOnly {
		return
	}
	if limit <= 0 {
		limit = filestore.DefaultLimit
	}
	if d.log.Bytes()-d.checkpointed.Load() > 2*limit {
		d.file.AskCheckpoint()
	}
}

// tick returns a time stamp such that every update with a smaller stamp is in the store: log and
// store change together under the commit lock.
func (d *core) tick() ulog.Stamp {
	d.commitMu.Lock()
	defer d.commitMu.Unlock()
	return d.tickLocked()
}

// tickLocked is tick for callers that hold commitMu.
func (d *core) tickLocked() ulog.Stamp {
	if d.sharesLog {
		return d.log.Tick()
	}
	return ulog.Stamp(d.now().UnixMilli() * nanosPerMilli)
}

// Frozen is a database as it was at an instant. It is for one goroutine, which must close it.
type Frozen struct {
	LogID [16]byte // identity of the update log that the stamp belongs to, zeros without -ulog

	// of the newest update in the shared log at the instant, of whatever database; 0: not known
	Newest ulog.Stamp
	By     uint16 // the server that has made the newest update

	stamp   ulog.Stamp
	size    int64
	order   expr.Order
	hold    *ulog.Hold // whoever gets the records may want what comes after them
	records store.Frozen
}

// Freeze returns the database as it is at an instant of the call, while clients go on reading and
// writing. They wait for some microseconds, however large the database is. Any number of Frozen may
// be open at a time.
//
// In memory, the old form of a record is kept from its next change until the scan has passed it,
// and cleared records are kept until Close: memory grows by what changes meanwhile. A file is
// brought up to date first, which takes as long as a checkpoint and fails when the disk is full;
// until Close the file grows by what changes, see filestore.(*Store).Freeze. When Freeze returns,
// the update log is on the disk up to the stamp.
//
// The server closes what is frozen before it closes databases: closing a file waits for it.
//
// Records in an engine are those of a moment of the call, see engine.Snapshot.
func (d *DB) Freeze() (*Frozen, error) {
	if d.shared != nil {
		return d.freezeShared()
	}
	s, ok := ordered.Unwrap(d.store).(store.Freezer)
	if !ok {
		return nil, dberr.ErrNotImplemented
	}
	f := &Frozen{order: d.expr.Params.RComp}
	if d.sharesLog {
		f.hold = d.log.Hold(ulog.Holder{Kind: ulog.Copy, What: "a copy or snapshot of " + d.path() + " under way"}, d.log.Last())
	}
	var err error
	f.records, err = s.Freeze(func(take func()) {
		d.commitMu.Lock()
		defer d.commitMu.Unlock()
		if d.sharesLog {
			f.Newest, f.By = d.log.NewestUpdate() // before the instant: it is on the disk with that
		}
		f.stamp = d.tickLocked()
		take()
		if d.file == nil {
			f.size = d.used()
		}
	})
	if err != nil {
		f.hold.Release()
		return nil, systemError(err)
	}
	f.hold.Advance(f.stamp)
	if d.file != nil {
		f.size = d.file.FileSize()
	}
	if !d.sharesLog {
		return f, nil
	}
	f.LogID = d.log.ID()
	if err := d.log.SyncTo(f.stamp); err != nil {
		_ = f.Close() // the log's error says more
		return nil, systemError(err)
	}
	return f, nil
}

// freezeShared is Freeze for a database that an engine keeps.
func (d *core) freezeShared() (*Frozen, error) {
	records, at, bytes, err := d.shared.moment()
	if err != nil {
		return nil, err
	}
	if at == 0 {
		at = d.tick()
	}
	return &Frozen{stamp: at, size: bytes, order: d.expr.Params.RComp, records: records}, nil
}

// Stamp returns the time stamp of the instant: the Frozen has every update of the server's update
// log up to it, and nothing newer. Without -ulog it is the time, in the same unit.
func (f *Frozen) Stamp() ulog.Stamp { return f.stamp }

// Size returns the size of the database in bytes, as DB.Size does.
func (f *Frozen) Size() int64 { return f.size }

// Count returns the number of records that Scan visits, expired ones included; also for a text
// database.
func (f *Frozen) Count() int64 { return f.records.Count() }

// Scan calls visit for every record of the instant, expired ones included, in the order of the
// database. key is the key as clients know it; value is the stored form, with the expiration time
// in front unless the database is persistent. The slices are valid during the call, which may take
// as long as it likes. An error of visit ends the scan and is returned. A Frozen can be scanned
// once: it forgets what the scan has passed.
func (f *Frozen) Scan(visit func(key, value []byte) error) error {
	skip := ordered.KeyPrefix(f.order)
	return f.records.Scan(f.order.Descends(), func(key, value []byte) error { return visit(key[skip:], value) })
}

// versioned is the records of a file that may keep versions.
type versioned interface {
	Versions() (filestore.Versions, bool)
	ScanVersions(visit func(key, value []byte, v filestore.LastUpdate) error) error
}

// Versions reports whether ScanVersions works, and returns what else the file remembers. Only files
// created with lww=true keep versions.
func (f *Frozen) Versions() (v filestore.Versions, ok bool) {
	if records, is := f.records.(versioned); is {
		return records.Versions()
	}
	return v, false
}

// ScanVersions is Scan with the version of each record, and with the removals that the file
// remembers, in the order of keys.
func (f *Frozen) ScanVersions(visit func(key, value []byte, v filestore.LastUpdate) error) error {
	return f.records.(versioned).ScanVersions(visit)
}

// Close gives back what is kept for the Frozen. Closing twice is fine.
func (f *Frozen) Close() error {
	f.hold.Release()
	return f.records.Close()
}
