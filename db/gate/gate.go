// Package gate is the gate in front of the update log: it refuses updates for which there is no
// room on the disk or in memory. The server looks at disk and memory now and then and sets the
// limits; between two looks the gate counts what has been let through.
package gate

import (
	"sync/atomic"

	"gotycoon/db/dberr"
	"gotycoon/ulog"
)

// Limits is how much databases may grow until they are set again.
type Limits struct {
	Disk    int64 // bytes of updates that logs may take; below 0: none
	Reserve int64 // bytes beyond that for removals
	Full    bool  // records in memory may not grow
	Over    bool  // no database may grow
	Keep    int64 // bytes of the disk that shall stay free, for those who can do without
}

// Gate refuses updates before they are in the log or in memory: after that they cannot be taken
// back. Its zero value, and nil, let everything through.
type Gate struct {
	watched atomic.Bool
	disk    atomic.Int64 // Limits.Disk less what has been appended since, and less ahead
	reserve atomic.Int64
	none    atomic.Bool // Limits.Disk is below 0
	// bytes of large values that go ahead: a look at the disk finds only a part of them there
	ahead atomic.Int64
	full  atomic.Bool
	over  atomic.Bool
	keep  atomic.Int64
	out   atomic.Bool // an update was refused because of disk

	refusals struct{ disk, memory, size atomic.Int64 } // updates since the start
}

// Refusals counts the updates that were refused since the start, by what was short.
type Refusals struct{ Disk, Memory, Size int64 }

// Refusals returns how many updates were refused. A bulk that is stored as a whole counts once.
func (g *Gate) Refusals() Refusals {
	r := &g.refusals
	return Refusals{r.disk.Load(), r.memory.Load(), r.size.Load()}
}

// Set sets how much the databases may grow.
func (g *Gate) Set(l Limits) {
	ahead := g.ahead.Load()
	g.none.Store(l.Disk < 0)
	g.disk.Store(l.Disk - ahead)
	g.reserve.Store(l.Reserve + ahead)
	g.full.Store(l.Full)
	g.over.Store(l.Over)
	g.keep.Store(l.Keep)
	g.watched.Store(true)
}

// Keep returns how many bytes of the disk shall stay free: with less, updates would be refused.
func (g *Gate) Keep() int64 {
	if g == nil {
		return 0
	}
	return g.keep.Load()
}

// NoDisk reports whether there is no room on the disk for updates.
func (g *Gate) NoDisk() bool { return g.none.Load() }

// roomy is the room on the disk with which many small updates are let through.
const roomy = 1 << 20

// Roomy reports whether there is room for many small updates, of any kind.
func (g *Gate) Roomy() bool {
	return g == nil || !g.watched.Load() || g.disk.Load() >= roomy && !g.full.Load() && !g.over.Load()
}

// KeepFor keeps room for so many more bytes of values that go ahead, in the next looks at the disk.
func (g *Gate) KeepFor(bytes int) {
	if g != nil {
		g.ahead.Add(int64(bytes))
	}
}

// RanOut reports whether an update was refused because of Limits.Disk since the last call.
func (g *Gate) RanOut() bool { return g.out.Swap(false) }

// Fits takes the room for updates of a database, or returns why there is none. logged says that the
// updates go into a log, and inMemory that the records stay in memory. Records of vital keys are
// stored as long as there is any room; a nil vital means that no key is vital.
func (g *Gate) Fits(ups []ulog.Update, logged, inMemory bool, vital func(key []byte) bool) error {
	if g == nil || !g.watched.Load() {
		return nil
	}
	size, grows := int64(0), false
	for i := range ups {
		size += int64(len(ups[i].Key) + len(ups[i].Value) + logOverhead)
		grows = grows || ups[i].Op == ulog.OpSet && (vital == nil || !vital(ups[i].Key))
	}
	switch {
	case grows && g.over.Load():
		g.refusals.size.Add(1)
		return dberr.ErrOverSize
	case grows && inMemory && g.full.Load():
		g.refusals.memory.Add(1)
		return dberr.ErrNoMemory
	case !logged:
		return nil
	}
	least := int64(0)
	if !grows {
		least = -g.reserve.Load()
	}
	if g.disk.Add(-size) < least {
		g.disk.Add(size)
		return dberr.ErrNoSpace
	}
	return nil
}

// RefuseAll counts an update for which the disk has no room, and returns the error for it. All
// other updates are refused for a moment as well, see RanOut: the disk is nearly full.
func (g *Gate) RefuseAll() error {
	if g != nil {
		g.refusals.disk.Add(1)
		if !g.out.Load() { // all connections share it
			g.out.Store(true)
		}
	}
	return dberr.ErrNoSpace
}

// RefuseOne counts a large update for which the disk has no room. That says nothing about other
// updates. It reports whether there is room for smaller ones.
func (g *Gate) RefuseOne() bool {
	g.refusals.disk.Add(1)
	return !g.NoDisk()
}

// logOverhead is what a log adds to an update at most: the record's frame, sizes, and its group's
// commit record.
const logOverhead = 64
