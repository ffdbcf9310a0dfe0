package gather

import (
	"bytes"
	"slices"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

// slot is one key of a group.
type slot struct {
	key  engine.Key
	hash uint64
	next int32 // slot with the same hash plus one, 0 for none

	wanted bool // the record is to be read
	found  bool // there is one in the engine
	record engine.Record

	guess   *guess // what the lane knows of it, nil for nothing
	guessed uint64 // the revision that the lane believes it to have, 0 for none
	assumed bool   // record is the guess, and was not read

	reader *task // last one that has read the engine's record
	needed bool  // a change depends on the engine's record
	dirty  bool  // a body has changed it
	by     *task // the last one
	exists bool  // after the change
	value  []byte
	xt     int64

	first, last int32 // updates plus one, 0 for none
	change      int32 // place in the group, -1 for none
}

// logged is an update and the next one of the same key, plus one.
type logged struct {
	ulog.Update
	next int32
}

const (
	leastRoom = 16 << 10
	keepRoom  = 1 << 20 // more room, and what more records need, is not kept
	keepSlots = 1 << 12
)

// reset makes the view empty.
func (v *View) reset(now int64) {
	if cap(v.room) > keepRoom {
		v.room = nil
	}
	if cap(v.slots) > keepSlots || cap(v.ups) > keepSlots {
		v.slots, v.ups, v.order, v.changes, v.log, v.heads = nil, nil, nil, nil, nil, nil
	}
	if v.heads == nil {
		v.heads = map[uint64]int32{}
	}
	clear(v.heads)
	clear(v.slots)
	clear(v.ups)
	clear(v.changes)
	clear(v.log)
	v.slots, v.ups, v.order, v.room = v.slots[:0], v.ups[:0], v.order[:0], v.room[:0]
	v.changes, v.log, v.now, v.task = v.changes[:0], v.log[:0], now, nil
}

// find returns the slot of a key, nil for none.
func (v *View) find(k engine.Key, hash uint64) *slot {
	for i := v.heads[hash]; i > 0; i = v.slots[i-1].next {
		if s := &v.slots[i-1]; s.key.DB == k.DB && bytes.Equal(s.key.Key, k.Key) {
			return s
		}
	}
	return nil
}

// add adds the key of a task that waits.
func (v *View) add(k engine.Key, hash uint64, wanted bool) {
	s := v.find(k, hash)
	if s == nil {
		n := len(v.slots)
		v.slots = append(v.slots, slot{
			key: engine.Key{DB: k.DB, Key: v.copy(nil, k.Key)}, hash: hash, next: v.heads[hash], change: -1,
		})
		v.heads[hash] = int32(n + 1)
		v.order = append(v.order, int32(n))
		s = &v.slots[n]
	}
	s.wanted = s.wanted || wanted
}

// copy returns head and tail in one slice in the room of the group. Slices in the room stay as they
// are until the group is over.
func (v *View) copy(head, tail []byte) []byte {
	n := len(head) + len(tail)
	if n > cap(v.room)-len(v.room) {
		v.room = make([]byte, 0, max(n, min(2*cap(v.room), keepRoom), leastRoom))
	}
	at := len(v.room)
	v.room = append(append(v.room, head...), tail...)
	return v.room[at:len(v.room):len(v.room)]
}

// sort puts the slots into the order of their keys.
func (v *View) sort() {
	slices.SortFunc(v.order, func(a, b int32) int { return engine.Compare(v.slots[a].key, v.slots[b].key) })
}

// wants returns the keys to be read, ascending: all of them if the group is to be held. Records
// that are assumed need not be read.
func (v *View) wants(dst []engine.Key, all bool) []engine.Key {
	for _, i := range v.order {
		if s := &v.slots[i]; s.wanted && !s.assumed || all {
			s.wanted = true
			dst = append(dst, s.key)
		}
	}
	return dst
}

// fill takes the records that were read, which are ascending.
func (v *View) fill(recs []engine.Record) {
	for _, i := range v.order {
		s := &v.slots[i]
		if len(recs) > 0 && engine.Compare(recs[0].Key, s.key) == 0 {
			s.found, s.record = true, recs[0]
			recs = recs[1:]
		}
	}
}

// conclude returns the changes that the bodies have made, and whether they change anything: records
// that are only looked at may be among them.
func (v *View) conclude() (all []engine.Change, changes bool) {
	if need := len(v.ups); cap(v.log) < need {
		v.log = make([]ulog.Update, 0, need)
	}
	for _, i := range v.order {
		s := &v.slots[i]
		c := engine.Change{Key: s.key, If: s.condition()}
		nothing := s.wanted && !s.exists && (!s.found || engine.Expired(s.record.XT, v.now))
		switch {
		case s.dirty && nothing: // made and removed again: to others it has never been there
			if !v.whole {
				continue
			}
			s.needed, c.Keep = true, true
			c.If = s.condition()
		case !s.dirty:
			if !s.needed || s.assumed { // who has only read what is assumed was put back
				continue
			}
			c.Keep = true
		case s.exists:
			c.Value, c.XT = s.value, s.xt
			changes = true
		default:
			c.Remove = true
			changes = true
		}
		if !c.Keep {
			at := len(v.log)
			for n := s.first; n > 0; n = v.ups[n-1].next {
				v.log = append(v.log, v.ups[n-1].Update)
			}
			c.Log = v.log[at:len(v.log):len(v.log)]
		}
		s.change = int32(len(v.changes))
		v.changes = append(v.changes, c)
	}
	return v.changes, changes
}

// condition returns what the engine's record must be for the change.
func (s *slot) condition() uint64 {
	switch {
	case !s.needed:
		return engine.Any
	case !s.found:
		return engine.Absent
	}
	return s.record.Revision
}
