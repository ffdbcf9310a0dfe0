package replication

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"gotycoon/binproto/frame"
	"gotycoon/client"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/ulog"
)

const (
	copyRecords = 500       // records of a copy that are stored together
	copyBytes   = 256 << 10 // and their size, unless one is larger
	copyTold    = 10 * time.Second
)

var (
	errOtherLog  = errors.New("the master's update log has changed")
	errOtherKind = errors.New("one of the databases has expiration times (ktopts=p is missing) and the other has not")
)

// copyDatabases fetches the databases that are not complete. Afterwards the log is followed from the stamp of the first copy.
func (f *Follower) copyDatabases(ctx context.Context, m Master, h frame.Hello) error {
	f.status.set(Copying)
	for {
		part := f.place.incomplete()
		if part == nil {
			break
		}
		if err := f.copyDatabase(ctx, m, h, part); err != nil {
			return err
		}
	}
	f.place.settle(len(f.place.parts) >= len(f.shared(&h)))
	f.place.master, f.place.amends = ulog.LogKey(h.Log), amendsNone
	f.status.position.Store(uint64(f.place.position))
	f.save()
	return errAgain
}

// copyDatabase fetches one database, or goes on with it.
func (f *Follower) copyDatabase(ctx context.Context, m Master, h frame.Hello, part *part) error {
	if part.at < ulog.Stamp(h.First) && part.at > 0 {
		part.at, part.key = 0, nil // the log does not reach back to it any more
	}
	d := f.opts.Catalog.Numbered(int(part.db))
	c := client.New(m.address(), client.Options{Timeout: firstTimeout, Dial: f.dialClient})
	defer c.Close()
	cp := copier{f: f, db: d, part: part, hello: h, master: m, told: time.Now()}
	f.opts.Logger.Info(fmt.Sprintf("fetching a copy of the master's database %d for %s", part.db, d.Path()))
	o := client.CopyOptions{Limit: f.opts.CopyLimit, From: part.key, Begin: cp.begin, Visit: cp.visit, Newest: h.Newest}
	if d.KeepsVersions() && part.db != db.ServicesIndex { // there it is not the newer update that counts
		o.Version = cp.visitVersion
	}
	err := c.CopyForFollower(ctx, f.opts.SID, part.db, o)
	if err == nil {
		err = cp.end()
	}
	if e, ok := errors.AsType[*client.Error](err); ok && e.Code == client.Internal && part.key != nil {
		part.at, part.key = 0, nil // the database's kind may have changed
	}
	if err != nil {
		f.save()
		f.tellFailed(ctx, part.db, err)
		return fmt.Errorf("copy of database %d: %w", part.db, err)
	}
	return nil
}

// tellFailed tells why a copy has ended early, unless that is known.
func (f *Follower) tellFailed(ctx context.Context, db uint16, err error) {
	if text := err.Error(); ctx.Err() == nil && text != f.failed {
		f.failed = text
		f.opts.Logger.Warn(fmt.Sprintf("the copy of database %d is tried again, since it has ended early: %v", db, err))
	}
}

// copier stores one copy.
type copier struct {
	f      *Follower
	db     *db.DB
	part   *part
	hello  frame.Hello
	master Master
	log    uint64     // where its updates count as made
	stamp  ulog.Stamp // and when the last one did
	merges bool
	told   time.Time

	versioned bool       // the copy tells the versions of records, see copy_versions.go
	floor     ulog.Stamp // removals up to here may be missing from it

	records []ulog.Update
	room    []byte // keys and values of records
	pending db.Pending
}

// begin prepares the database: one that can be merged into keeps what it has.
func (c *copier) begin(info client.CopyInfo) error {
	switch {
	case info.LogID != c.hello.Log:
		return errOtherLog
	case info.Persistent != c.db.Persistent():
		return errOtherKind
	case c.f.place.amends == amendsVersions && !info.Versioned && c.part.db != db.ServicesIndex:
		return fmt.Errorf("%w, and its database %d keeps no versions (lww=true), so a copy would replace what is newer here. %s", errParted, c.part.db, partedRemedy(c.master))
	}
	c.merges, c.log = info.Ascending && c.db.Mergeable(), copyLog(c.hello, c.f.ownLog)
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

// copyLog returns the log in which the updates of a copy count as made. It must be another than the master's: the followers of this server
// take the stamps from there as a sign of what they have had already.
func copyLog(h frame.Hello, own uint64) uint64 {
	return max(1, bits.RotateLeft64(ulog.LogKey(h.Log), 1)^own)
}

// copySpan is how long before the copy's stamp its updates count as made. Newer updates of the master must count as newer, so they begin so
// much earlier, and each has the next stamp.
const copySpan = 1_000_000_000

// update is an update that makes this database more like the copy.
func (c *copier) update(op ulog.Op, key, value []byte) ulog.Update {
	return ulog.Update{SID: c.hello.SID, DBID: c.part.db, Op: op, Key: key, Value: value}
}

// visit takes a record. The slices are valid during the call.
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

// flush stores the collected records. all tells that they are the last.
func (c *copier) flush(all bool) error {
	n, bytes := len(c.records), len(c.room)
	var last []byte
	if n > 0 {
		last = c.records[n-1].Key
	}
	if c.part.db == db.ServicesIndex { // before anything is removed: a claim says whose records these are
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
		c.f.attempts = 0 // they are not in vain
	}
	c.f.status.heard.Store(time.Now().UnixNano())
	c.f.status.copied(func(s *CopyStatus) { s.Records += int64(n); s.Bytes += int64(bytes) })
	c.tell()
	return nil
}

// storeRecords stores what differs.
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

// removeStrangers removes what this database has between the records of the copy.
func (c *copier) removeStrangers(last []byte, all bool) error {
	known := make(map[string]struct{}, len(c.records))
	for i := range c.records {
		known[string(c.records[i].Key)] = struct{}{}
	}
	if all {
		last = nil
	}
	if c.versioned && c.floor == 0 {
		return nil // it has told all removals
	}
	after := c.part.key
	for {
		keys, err := c.db.Strangers(after, last, copyRecords, func(key []byte) bool { _, ok := known[string(key)]; return ok })
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

// store stores updates, and remembers with the last of them the key that the copy has reached.
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
		return &ulog.Position{DBID: c.part.db, State: place.encode()}
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

// tell tells how far the copy is, now and then.
func (c *copier) tell() {
	if time.Since(c.told) < copyTold {
		return
	}
	c.told = time.Now()
	c.f.status.copied(func(s *CopyStatus) {
		c.f.opts.Logger.Info(fmt.Sprintf("copy of database %d: %d of %d records", s.DB, s.Records, s.Total))
	})
}

// end makes the database complete.
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
