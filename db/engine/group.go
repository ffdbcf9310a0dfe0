package engine

import (
	"fmt"
	"slices"

	"gotycoon/ulog"
)

// Stamp is a position in the engine's log, see ulog.Stamp.
type Stamp = ulog.Stamp

// Conditions of a change beside revisions, which are above both.
const (
	Any    uint64 = 0 // the change is made whether there is a record or not
	Absent uint64 = 1 // there is no record, not even an expired one
)

// Revisions are between these two: 53 bits, so that any client's number can hold one.
const (
	FirstRevision uint64 = 2
	// Replaced is a revision that no record ever has. It is for whoever changed a record that was
	// changed again in the same group.
	Replaced uint64 = 1<<53 - 1
)

// LastSeq is the last number of a lane's group. A writer that comes so far goes on with another
// lane: at a thousand groups per second after 99 days.
const LastSeq uint64 = 1<<33 - 1

// GroupID names a group. A lane is one writer's, see Engine.Lane; Seq counts the lane's groups from
// 1.
type GroupID struct{ Lane, Seq uint64 }

// Revision returns the revision that a group gives the records that it stores: the lane in the
// upper bits and Seq in the lower ones.
func (id GroupID) Revision() uint64 { return id.Lane<<33 | id.Seq }

// Group is changes that are made in one step.
type Group struct {
	ID      GroupID
	Clear   *Clear   // the database that is emptied first; nil: none
	Changes []Change // one for a key at most, ascending: engines lock in this order, so groups never deadlock
	Whole   bool     // all changes or none
	// Position is noted in the log with the group's updates, where they came from a master: up to
	// where its log was followed.
	Position *ulog.Position
	// Guard is a lease of the writer. When it has ended, nothing is done: the error is ErrFenced.
	Guard *Term
	// NoWait says that the group does not wait for who has one of its databases alone, nor a Clear
	// for who uses the database. It is not made then: the error is that of Locked.
	NoWait bool
	// Epoch is that of the moment before the writer has read what conditions of the group compare;
	// 0: they compare nothing but revisions of the writer's own lane. The group is not made over a
	// connection of a later epoch: the error is of the kind Undone.
	Epoch uint64
}

// Reading says how a Read is made. The zero value is a plain one.
type Reading struct {
	Hold   GroupID // hold the keys for this group; without a Lane: none
	NoWait bool    // as in Group, for who has a database alone; a hold waits for keys all the same
	Most   int     // values with more bytes are left out; 0: none is
}

// Clear empties a database. In a group with a Clear every change has the condition Any.
type Clear struct {
	DB  uint16
	Log []ulog.Update
}

// Change stores or removes one record, or only looks at it.
type Change struct {
	Key
	Remove bool
	Keep   bool   // nothing is changed: the condition alone counts, at the moment of the other changes
	Value  []byte // without an expiration time in front
	XT     int64  // as in Record
	If     uint64 // the revision that the record must have, Absent or Any
	// Log is the updates that have led to this state of the key, oldest first: several where
	// operations of a group met on the key. Those of a change that has lost are not logged. Nor are
	// those of a removal without a record: nothing is locked then, so their stamp could come behind
	// that of another server's later set.
	Log []ulog.Update
}

// Result is what has become of a group.
type Result struct {
	// Won has an element for each change and says whether its condition held. With Whole nothing
	// was made when one of them is false.
	Won      []bool
	Revision uint64 // that the stored records have now
	Stamp    Stamp  // of the last update; 0: the group has logged nothing
}

// Made reports whether all conditions held.
func (r Result) Made() bool { return !slices.Contains(r.Won, false) }

// Size returns the bytes of a change that count for Limits.Bytes.
func (c *Change) Size() int { return len(c.Key.Key) + len(c.Value) }

// Empty reports whether the group changes and notes nothing.
func (g *Group) Empty() bool {
	return len(g.Changes) == 0 && g.Clear == nil && g.Position == nil
}

// Check returns why an engine with these limits refuses the group, nil where it does not. Engines
// call it first, so they refuse the same with the same words.
func (g *Group) Check(l Limits) error {
	size := 0
	for i := range g.Changes {
		c := &g.Changes[i]
		size += c.Size()
		if err := c.check(l); err != nil {
			return err
		}
		if i > 0 && Compare(g.Changes[i-1].Key, c.Key) >= 0 {
			return Refuse("the changes of a group are not in the order of their keys, or two have the same key")
		}
		if g.Clear != nil && c.If != Any {
			return Refuse("a group that clears a database has a change with a condition")
		}
	}
	switch {
	case g.ID.Lane == 0 || g.ID.Seq == 0:
		return Refuse("the group has no ID")
	case size > l.Bytes:
		return Refuse(fmt.Sprintf("the engine changes at most %d bytes in one step", l.Bytes))
	}
	return l.Fits(len(g.Changes))
}

// Fits returns why an engine refuses a group with so many changes, nil where it does not.
func (l *Limits) Fits(changes int) error {
	if changes > l.Changes {
		return Refuse(fmt.Sprintf("the engine changes at most %d records in one step", l.Changes))
	}
	return nil
}

func (c *Change) check(l Limits) error {
	switch {
	case len(c.Key.Key) > l.Key:
		return Refuse(fmt.Sprintf("the engine keeps keys of at most %d bytes", l.Key))
	case len(c.Value) > l.Value:
		return Refuse(fmt.Sprintf("the engine keeps values of at most %d bytes", l.Value))
	case c.Keep && (c.Remove || c.If == Any || len(c.Log) > 0):
		return Refuse("a change that keeps a record must have a condition, and nothing else")
	case c.Remove && c.If == Absent:
		return Refuse("a change removes a record that must not be there")
	}
	return nil
}
