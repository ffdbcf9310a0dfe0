package gather

import (
	"bytes"

	"gotycoon/db/engine"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// View is the records of a group: as the engine has them, with what the bodies before have changed.
// A body may use it while it runs, and the keys that its operation names.
type View struct {
	g    *Gather
	task *task // whose body runs
	now  int64
	// a body is part of a whole: what it has read counts, though it may have changed another key
	whole bool

	slots []slot
	heads map[uint64]int32 // by the hash of a key, its newest slot plus one
	order []int32          // slots in the order of their keys
	ups   []logged
	room  []byte // keys and stored values of the group

	changes []engine.Change
	log     []ulog.Update // of all changes
}

// slot returns the slot of a key that the body's operation names.
func (v *View) slot(k engine.Key) *slot {
	hash := v.task.hash
	if len(v.task.keys) != 1 {
		hash = v.g.hash(k)
	}
	s := v.find(k, hash)
	if s == nil || len(v.task.keys) == 1 && !bytes.Equal(v.task.keys[0].Key, k.Key) {
		panic("gather: a body uses a key that its operation does not name")
	}
	return s
}

// Now returns the time in seconds by which records expire, the same for the whole group.
func (v *View) Now() int64 { return v.now }

// Read returns the live record of a key, which is valid while the body runs and must not be
// changed. The Revision of a record that was changed in this group is engine.Replaced: nobody has
// been told of it.
func (v *View) Read(k engine.Key) (r engine.Record, found bool) {
	if v.task.op.Blind {
		panic("gather: the body of a blind operation reads")
	}
	s := v.slot(k)
	if s.dirty {
		r = engine.Record{Key: s.key, Value: s.value, XT: s.xt, Revision: engine.Replaced}
		return r, s.exists && !engine.Expired(s.xt, v.now)
	}
	s.read(v)
	return s.record, s.found && !engine.Expired(s.record.XT, v.now)
}

// read notes that the body has seen the engine's record.
func (s *slot) read(v *View) {
	s.reader = v.task
	s.needed = s.needed || v.whole || s.assumed
}

// Set stores a record, which expires at the absolute time xt in seconds, in a database that is not
// Persistent.
func (v *View) Set(k engine.Key, value []byte, xt int64) {
	var head [record.XTSize]byte
	v.store(k, v.copy(record.AppendXT(head[:0], xt), value), ulog.Update{SID: v.g.opts.SID})
}

// Remove removes a record. Where there is none it does nothing, and nothing is logged.
func (v *View) Remove(k engine.Key) { v.remove(k, ulog.Update{SID: v.g.opts.SID}) }

// Apply makes an update of another server, a set or a removal, whose server ID and origin go into
// the log.
func (v *View) Apply(u *ulog.Update) {
	k, from := engine.Key{DB: u.DBID, Key: u.Key}, ulog.Update{SID: u.SID, Origin: u.Origin}
	if u.Op == ulog.OpSet {
		v.store(k, v.copy(nil, u.Value), from)
	} else {
		v.remove(k, from)
	}
}

// store stores a value, which has its expiration time in front where records may expire.
func (v *View) store(k engine.Key, stored []byte, u ulog.Update) {
	s := v.slot(k)
	xt, value := engine.Forever, stored
	if !v.g.opts.Persistent[k.DB] {
		var ok bool
		if xt, value, ok = record.Split(stored); !ok {
			panic("gather: an update has no expiration time in front of its value")
		}
	}
	s.exists, s.value, s.xt = true, value, xt
	u.Op, u.Value = ulog.OpSet, stored
	v.changed(s, u)
}

func (v *View) remove(k engine.Key, u ulog.Update) {
	s := v.slot(k)
	switch {
	case s.dirty && !s.exists:
		return
	case !s.dirty && s.wanted:
		s.read(v)
		if !s.found || engine.Expired(s.record.XT, v.now) {
			return
		}
	}
	s.exists, s.value = false, nil
	u.Op = ulog.OpRemove
	v.changed(s, u)
}

// changed notes a change and its update.
func (v *View) changed(s *slot, u ulog.Update) {
	s.needed = s.needed || s.reader == v.task
	s.dirty, s.by, v.task.changed = true, v.task, true
	if !v.g.logs {
		return
	}
	u.DBID, u.Key = s.key.DB, s.key.Key
	v.ups = append(v.ups, logged{Update: u})
	n := int32(len(v.ups))
	if s.last > 0 {
		v.ups[s.last-1].next = n
	} else {
		s.first = n
	}
	s.last = n
}
