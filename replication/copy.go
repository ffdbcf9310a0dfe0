package replication

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"gotycoon/client"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

const (
	copyRecords = 500       // records of a copy that are stored together
	copyBytes   = 256 << 10 // and their size, unless one record is larger
	copyTold    = 10 * time.Second

	// copySpan: the first update of a copy counts as made this long before the instant of the copy,
	// in nanoseconds. Each further update has the next stamp, so that all of them are older than
	// the master's updates after the copy.
	copySpan = 1_000_000_000

	// oldest is the version of a record that the master had before it kept versions.
	oldest = filestore.Oldest
)

var errOtherLog = errors.New("the master's update log has changed")

// copier stores one copy of a database, as updates that change the database into the copy.
//
// If both databases are in the same order, the copy is merged into what is here: records that are
// equal stay, keys that the copy lacks (strangers) are removed between two records of the copy, and
// a copy that was interrupted goes on behind its last key (part.key). Otherwise the database is
// cleared first.
//
// If both databases keep versions, the copy has the versions of its records, and the removals. Then
// a record or removal of the copy is stored only if it is newer than what is here: records that
// were written here and have not reached the master yet stay.
type copier struct {
	f      *Follower
	db     *db.DB
	part   *part
	hello  frame.Hello
	master Master
	log    uint64     // the log in which the copy's updates count as made
	stamp  ulog.Stamp // of the last such update
	merges bool
	told   time.Time // when the progress was last logged

	versioned bool       // the copy has versions
	floor     ulog.Stamp // removals up to this stamp may be missing from the copy; 0: it has all

	records []ulog.Update
	room    []byte // keys and values of records
	pending db.Pending
}

// begin prepares the database for a copy: it clears a database that the copy cannot be merged into.
func (c *copier) begin(info client.CopyInfo) error {
	switch {
	case info.LogID != c.hello.Log:
		return errOtherLog
	case info.Persistent != c.db.Info().Persistent:
		return errOtherKind
	case c.f.place.amends == amendsVersions && !info.Versioned && c.part.db != db.ServicesIndex:
		return fmt.Errorf("%w, and its database %d keeps no versions (lww=true), so a copy would replace what is newer here. %s", errParted, c.part.db, partedRemedy(c.master))
	}
	c.merges, c.log = info.Ascending && c.db.Info().Mergeable, copyLog(c.hello, c.f.ownLog)
	c.stamp = max(ulog.Stamp(max(info.TS, copySpan))-copySpan, c.f.place.marks[c.log])
	c.versioned, c.floor = info.Versioned, ulog.Stamp(info.Floor)
	c.f.place.copying(ulog.Stamp(info.TS), ulog.Stamp(info.Newest), info.NewestBy)
	c.f.status.copied(func(s *CopyStatus) { *s = CopyStatus{DB: int(c.part.db), Total: info.Count} })
	if c.part.key != nil && c.merges {
		c.f.opts.Logger.Info(fmt.Sprintf("the copy goes on behind the key %q", c.part.key))
		return nil
	}
	c.part.at, c.part.key = ulog.Stamp(info.TS), nil
	switch {
	case c.versioned && info.ClearedAt > 0:
		return c.store([]ulog.Update{c.clearOf(info)}, nil)
	case c.merges:
		return nil
	}
	return c.store([]ulog.Update{c.update(ulog.OpClear, nil, nil)}, nil)
}

// copyLog returns the log in which the updates of a copy count as made. It must not be the master's
// own log: the followers of this server would take the stamps as marks of that log, and drop
// updates of the master that they have not had.
func copyLog(h frame.Hello, own uint64) uint64 {
	return copyKey(ulog.LogKey(h.Log), own)
}

// copyKey is copyLog for the key of the master's log.
func copyKey(from, own uint64) uint64 { return max(1, bits.RotateLeft64(from, 1)^own) }

// update returns an update of the database that counts as made by the master.
func (c *copier) update(op ulog.Op, key, value []byte) ulog.Update {
	return ulog.Update{SID: c.hello.SID, DBID: c.part.db, Op: op, Key: key, Value: value}
}

// visit takes a record of the copy. The slices are valid during the call.
func (c *copier) visit(key, value []byte) error {
	return c.take(c.update(ulog.OpSet, key, value))
}

// take collects an update. Its key and value are copied.
func (c *copier) take(u ulog.Update) error {
	key, value := u.Key, u.Value
	if len(c.records) == copyRecords || len(c.records) > 0 && len(c.room)+len(key)+len(value) > copyBytes {
		if err := c.flush(false); err != nil {
			return err
		}
	}
	at := len(c.room)
	c.room = append(append(c.room, key...), value...)
	middle := at + len(key)
	u.Key, u.Value = c.room[at:middle:middle], c.room[middle:len(c.room):len(c.room)]
	c.records = append(c.records, u)
	return nil
}

// flush stores the collected records, and removes the strangers between them. all says that no more
// records follow: then strangers behind the last record are removed too.
func (c *copier) flush(all bool) error {
	n, bytes := len(c.records), len(c.room)
	var last []byte
	if n > 0 {
		last = c.records[n-1].Key
	}
	// Prepare comes before any removal: a claim among the records says who is the primary, and
	// Replicate decides by this which removals are the master's to make.
	if c.part.db == db.ServicesIndex {
		if _, err := c.f.opts.Services.Prepare(c.records); err != nil {
			return err
		}
	}
	if c.merges && (n > 0 || all) {
		if err := c.removeStrangers(last, all); err != nil {
			return err
		}
	}
	if err := c.storeRecords(last); err != nil {
		return err
	}
	c.records, c.room = c.records[:0], c.room[:0]
	if n > 0 {
		c.f.attempts = 0 // the connection is not in vain
	}
	c.f.status.heard.Store(time.Now().UnixNano())
	c.f.status.copied(func(s *CopyStatus) { s.Records += int64(n); s.Bytes += int64(bytes) })
	c.tell()
	return nil
}

// storeRecords stores the collected records that differ from what is here.
func (c *copier) storeRecords(last []byte) error {
	ups := c.records
	if c.merges {
		var failed error
		ups = slices.DeleteFunc(slices.Clone(ups), func(u ulog.Update) bool {
			if c.versioned && u.Origin.Stamp > oldest {
				return false // the database compares the versions
			}
			same, err := c.db.HasStored(u.Key, u.Value)
			failed = errors.Join(failed, err)
			return same
		})
		if failed != nil {
			return failed
		}
	}
	reached := last
	if !c.merges || last == nil {
		reached = c.part.key
	}
	if err := c.store(ups, slices.Clone(reached)); err != nil {
		return err
	}
	c.part.key = slices.Clone(reached)
	return nil
}

// removeStrangers removes the keys that the copy lacks, from the last key of the previous records
// up to last, or up to the end with all.
func (c *copier) removeStrangers(last []byte, all bool) error {
	known := make(map[string]struct{}, len(c.records))
	for i := range c.records {
		known[string(c.records[i].Key)] = struct{}{}
	}
	if all {
		last = nil
	}
	if c.versioned && c.floor == 0 {
		return nil // the copy has all removals
	}
	after := c.part.key
	for {
		keys, err := c.strangers(after, last, known)
		if err != nil || len(keys) == 0 {
			return err
		}
		ups := make([]ulog.Update, len(keys))
		for i := range keys {
			ups[i] = c.update(ulog.OpRemove, keys[i], nil)
		}
		if c.versioned {
			if ups, err = c.forgotten(ups); err != nil {
				return err
			}
		}
		if err := c.store(ups, c.part.key); err != nil {
			return err
		}
		after = keys[len(keys)-1]
	}
}

// strangers returns keys that are not known: copyRecords at most, behind after (nil: from the first
// record) and up to upTo (nil: to the last record).
func (c *copier) strangers(after, upTo []byte, known map[string]struct{}) (keys [][]byte, err error) {
	err = c.db.Scan(nil, store.Start{Key: after, Edge: after == nil}, func(key, _ []byte) bool {
		if upTo != nil && bytes.Compare(key, upTo) > 0 {
			return false
		}
		if _, ok := known[string(key)]; !ok {
			keys = append(keys, bytes.Clone(key))
		}
		return len(keys) < copyRecords
	})
	return keys, err
}

// store stores updates and waits until they are durable. With the last update it remembers the key
// that the copy has reached.
func (c *copier) store(ups []ulog.Update, reached []byte) error {
	place, before := &c.f.place, c.part.key
	for i := range ups {
		if ups[i].Origin.Log == 0 {
			c.stamp++
			ups[i].Origin = ulog.Origin{Log: c.log, Stamp: c.stamp}
		}
	}
	note := func(n int) *ulog.Position {
		if o := ups[n-1].Origin; o.Log == c.log {
			place.mark(c.log, o.Stamp)
		}
		if n == len(ups) {
			c.part.key = reached
		}
		return &ulog.Position{DBID: c.part.db, State: place.encode(), After: c.part.at}
	}
	err := c.f.store(&c.pending, c.part.db, ups, note, true)
	if e, ok := errors.AsType[*dberr.Error](err); ok && e.Code == dberr.InvalidOperation {
		c.f.opts.Logger.Error(fmt.Sprintf("a record of the copy is left out: %v", e))
		err = nil
	}
	if err == nil {
		err = c.pending.Wait()
	}
	if err != nil {
		c.part.key = before
	}
	return err
}

// tell logs the progress now and then.
func (c *copier) tell() {
	if time.Since(c.told) < copyTold {
		return
	}
	c.told = time.Now()
	c.f.status.copied(func(s *CopyStatus) {
		c.f.opts.Logger.Info(fmt.Sprintf("copy of database %d: %d of %d records", s.DB, s.Records, s.Total))
	})
}

// end stores the last records and notes that the database is complete.
func (c *copier) end() error {
	if err := c.flush(true); err != nil {
		return err
	}
	c.part.copied, c.part.key = true, nil
	if c.part.db == db.ServicesIndex {
		c.f.refresh = false
		c.f.tellPartial()
	}
	c.f.opts.Logger.Info(fmt.Sprintf("the copy of database %d is complete up to ts=%d", c.part.db, c.part.at))
	c.f.save()
	return nil
}

// visitVersion is visit for a record or a removal with its version.
func (c *copier) visitVersion(key, value []byte, v client.CopyVersion) error {
	u := c.update(ulog.OpSet, key, value)
	if v.Removed {
		u.Op = ulog.OpRemove
	}
	u.SID, u.Origin = v.SID, ulog.Origin{Log: ulog.UnknownLog, Stamp: ulog.Stamp(v.Stamp)}
	if u.Origin.Stamp <= oldest { // nobody knows who made it; of two such records the master's wins
		u.SID = c.hello.SID
	}
	return c.take(u)
}

// clearOf returns the last clear that the master has had, as an update.
func (c *copier) clearOf(info client.CopyInfo) ulog.Update {
	u := c.update(ulog.OpClear, nil, nil)
	u.SID, u.Origin = info.ClearedBy, ulog.Origin{Log: ulog.UnknownLog, Stamp: ulog.Stamp(info.ClearedAt)}
	return u
}

// forgotten chooses the removals of strangers that are to be stored, for a copy that does not have
// all removals. If the newest version of a key here was made by the master, and before floor, the
// master had the key. The copy lacks the key, so the master has removed it, and has forgotten the
// removal since. A version that another server made may not have reached the master yet: the key
// stays.
func (c *copier) forgotten(ups []ulog.Update) (kept []ulog.Update, err error) {
	for _, u := range ups {
		v, found, err := c.db.LastVersion(u.Key)
		if err != nil {
			return nil, err
		}
		if found && v.SID == c.hello.SID && v.Stamp > oldest && v.Stamp < c.floor {
			u.Origin = ulog.Origin{Log: ulog.UnknownLog, Stamp: c.floor}
			kept = append(kept, u)
		}
	}
	return kept, nil
}
