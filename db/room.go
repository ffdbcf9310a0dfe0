package db

import (
	"errors"
	"path/filepath"
	"sync/atomic"

	"gotycoon/db/dberr"
	"gotycoon/ulog"
)

// Room is how much databases may grow until SetRoom is called again.
type Room struct {
	Disk    int64 // bytes of updates that logs may take; below 0: none
	Reserve int64 // bytes beyond that for removals
	Full    bool  // records in memory may not grow
	Over    bool  // no database may grow
}

// gate refuses updates before they are in the log or in memory: after that they cannot be taken
// back. Its zero value lets everything through.
type gate struct {
	watched atomic.Bool
	disk    atomic.Int64 // Room.Disk less what has been appended since, and less ahead
	reserve atomic.Int64
	none    atomic.Bool // Room.Disk is below 0
	// bytes of large values that go ahead: a look at the disk finds only a part of them there
	ahead atomic.Int64
	full  atomic.Bool
	over  atomic.Bool
	out   atomic.Bool // an update was refused because of disk

	refusals struct{ disk, memory, size atomic.Int64 } // updates since the start
}

// Refusals counts the updates that were refused since the start, by what was short.
type Refusals struct{ Disk, Memory, Size int64 }

// Refusals returns how many updates were refused. A bulk that is stored as a whole counts once.
func (c *Catalog) Refusals() Refusals {
	r := &c.gate.refusals
	return Refusals{r.disk.Load(), r.memory.Load(), r.size.Load()}
}

// SetRoom tells the databases how much they may grow.
func (c *Catalog) SetRoom(r Room) {
	g := &c.gate
	ahead := g.ahead.Load()
	g.none.Store(r.Disk < 0)
	g.disk.Store(r.Disk - ahead)
	g.reserve.Store(r.Reserve + ahead)
	g.full.Store(r.Full)
	g.over.Store(r.Over)
	g.watched.Store(true)
}

// noDisk reports whether there is no room on the disk for updates.
func (g *gate) noDisk() bool { return g.none.Load() }

// keepFor keeps room for so many more bytes of values that go ahead, in the next looks at the disk.
func (g *gate) keepFor(bytes int) {
	if g != nil {
		g.ahead.Add(int64(bytes))
	}
}

// RanOut reports whether an update was refused because of Room.Disk since the last call.
func (c *Catalog) RanOut() bool { return c.gate.out.Swap(false) }

// admit returns why there is no room for updates. After a refusal all other updates are refused for
// a moment as well: the disk is nearly full.
func (d *core) admit(ups []ulog.Update) error {
	err := d.fits(ups)
	if errors.Is(err, dberr.ErrNoSpace) {
		return d.gate.refuseDisk()
	}
	return err
}

// admitAlone is admit for a large value. A refusal says nothing about other updates.
func (d *core) admitAlone(ups []ulog.Update) error {
	err := d.fits(ups)
	if errors.Is(err, dberr.ErrNoSpace) {
		d.gate.refusals.disk.Add(1)
	}
	if errors.Is(err, dberr.ErrNoSpace) && !d.gate.noDisk() { // otherwise the log has it
		d.logger.Warn("no space for a large value, its update is refused", "path", d.path(), "bytes", len(ups[0].Value))
	}
	return err
}

// fits takes the room for updates, or returns why there is none.
func (d *core) fits(ups []ulog.Update) error {
	g := d.gate
	if g == nil || !g.watched.Load() {
		return nil
	}
	size, grows := int64(0), false
	for i := range ups {
		size += int64(len(ups[i].Key) + len(ups[i].Value) + logOverhead)
		grows = grows || ups[i].Op == ulog.OpSet && (d.vital == nil || !d.vital(ups[i].Key))
	}
	switch {
	case grows && g.over.Load():
		g.refusals.size.Add(1)
		return dberr.ErrOverSize
	case grows && d.file == nil && g.full.Load():
		g.refusals.memory.Add(1)
		return dberr.ErrNoMemory
	case d.log == nil:
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

// refuseDisk counts an update for which the disk has no room, and returns the error for it.
func (g *gate) refuseDisk() error {
	if g != nil {
		g.refusals.disk.Add(1)
		if !g.out.Load() { // all connections share it
			g.out.Store(true)
		}
	}
	return dberr.ErrNoSpace
}

// logOverhead is what a log adds to an update at most: the record's frame, sizes, and its group's
// commit record.
const logOverhead = 64

// Places returns the directories that updates are written to, each once.
func (c *Catalog) Places() []string {
	var places []string
	seen := map[string]bool{}
	add := func(dir string) {
		if !seen[dir] {
			seen[dir] = true
			places = append(places, dir)
		}
	}
	for _, l := range c.logs {
		add(l.Dir())
	}
	for _, d := range c.all {
		if d.file != nil {
			add(filepath.Dir(d.path()))
		}
	}
	return places
}

// unwritten returns the bytes of updates that files have not taken yet.
func (c *Catalog) unwritten() int64 {
	var sum int64
	for _, d := range c.all {
		if d.file != nil {
			sum += d.file.Unwritten()
		}
	}
	return sum
}

// FileSpace returns by how many bytes files may grow when they take what is still unwritten, and
// how many bytes they can take without growing.
func (c *Catalog) FileSpace() (needed, reusable int64) {
	const pages = 2 // pages may be half full
	for _, d := range c.all {
		if d.file == nil {
			continue
		}
		free, wanted := d.file.Reusable(), pages*d.file.Unwritten()
		needed += max(0, wanted-free)
		reusable += max(0, free-wanted)
	}
	return needed, reusable
}

// Shrink asks for private logs to become as short as possible: files are written, and the logs
// begin new segments. It does not wait.
func (c *Catalog) Shrink() {
	for _, d := range c.all {
		if d.file == nil {
			continue
		}
		if d.file.Unwritten() > 0 {
			d.file.AskCheckpoint()
		}
		if d.log != nil && !d.shared {
			d.log.BeginSegment()
		}
	}
}

// MemoryUsed returns the bytes of records in memory, updates that files have not taken yet
// included.
func (c *Catalog) MemoryUsed() int64 {
	sum := c.unwritten()
	for _, d := range c.all {
		if d.file == nil {
			sum += d.store.Size()
		}
	}
	return sum
}

// RecordBytes returns the bytes of keys and values of all databases; for databases in memory with
// the memory that keeping them takes.
func (c *Catalog) RecordBytes() int64 {
	var sum int64
	for _, d := range c.all {
		sum += d.store.Size()
	}
	return sum
}
