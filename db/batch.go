package db

import (
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/internal/pieces"
	"gotycoon/ulog"
)

// batch is the updates of one commit, with the room that their stored values, and the values read
// for them, take.
type batch struct {
	db   *core
	ups  []ulog.Update
	room []byte   // stored values; when they need more another one takes its place
	old  []byte   // scratch for values read
	held int      // bytes of old that the client's memory has given
	own  Pending  // for an operation that waits itself, see ownPending
	owed *Pending // of the client; nil: own counts
	view view     // where records are read while a group of the engine has its turn

	glance glance

	early *early // the value has gone ahead; nil: it has not
	stays bool   // a value stays as it is until the log has been waited for

	stripe *stripe   // the one that is locked; nil: those of keys are
	keys   stripeSet // the stripes to lock, for an operation on several keys
	logged bool      // the updates are in the log
	err    error     // a value cannot be stored

	version uint64 // what the keys get as their version; 0: a new number

	mortals int64 // records that can expire

	confirmed bool // they are those of a client, which followers may have to confirm

	// the updates are those of a master, which are stored also where clients are refused
	master  bool
	follow  *ulog.Position // what goes into the log with updates of a master; nil: nothing
	renewed []int          // those of them that become updates of this server, see renew
}

// early is a large value that log and store have taken before its key is locked: taking 250 MiB to
// the disk, or copying them, must not keep others waiting, not even for other keys of the same
// stripe. Whether the value is stored is decided when the key is locked, as for any other value. A
// nil early is a value that comes with its update.
type early struct {
	db   *core
	ups  []ulog.Update // the one of the value
	room []byte        // the value behind Headroom bytes
	xt   int64         // absolute
	kept int           // bytes of room on the disk that is kept for the value
}

// how says what an engine wants to know of a body before it runs.
type how struct {
	blind bool // it reads nothing
	bytes int  // about so many are stored
}

const (
	leastRoom = 512
	keepRoom  = 64 << 10 // larger scratch space is not kept
	keepUps   = 1 << 10
)

// newBatch takes a batch from the pool; free gives it back.
func (d *core) newBatch() *batch {
	if b, ok := d.batches.Get().(*batch); ok {
		return b
	}
	return &batch{db: d}
}

// ownPending returns the Pending of an operation that was given none: it is the server's own work,
// and waits for this server's log only.
func (b *batch) ownPending() *Pending {
	b.own.Local = true
	return &b.own
}

// free gives the batch back to the pool.
func (b *batch) free() {
	if cap(b.room) > keepRoom {
		b.room = nil
	}
	if cap(b.old) > keepRoom {
		b.old = nil
	}
	if cap(b.ups) > keepUps {
		b.ups = nil
	}
	clear(b.ups)
	b.ups, b.room, b.err, b.mortals, b.version, b.follow = b.ups[:0], b.room[:0], nil, 0, 0, nil
	b.master, b.renewed, b.stays, b.early = false, nil, false, nil
	b.stripe, b.keys, b.logged = nil, stripeSet{}, false
	b.owed, b.held = nil, 0
	b.view = view{}
	b.db.batches.Put(b)
}

// restart forgets what the body has done, which is to run again.
func (b *batch) restart() {
	clear(b.ups)
	b.ups, b.room, b.err, b.mortals, b.stays = b.ups[:0], b.room[:0], nil, 0, false
}

// restartAt is restart for a body that may have copied large values: their memory is given back,
// down to what the client had taken before.
func (b *batch) restartAt(taken int) {
	if b.owed.Taken() > taken {
		b.owed.GiveBack(taken)
		b.room, b.old, b.held = nil, nil, 0
	}
	b.restart()
}

// live returns the live record of key. r is asked before a large value is copied behind dst.
func (b *batch) live(r store.Reader, dst, key []byte) (value []byte, xt int64, found bool, err error) {
	if b.view.View == nil {
		return b.db.read(r, dst, key)
	}
	at := len(dst)
	if dst, found, err = b.view.Get(dst, key, r); err != nil || !found {
		return nil, 0, false, systemError(err)
	}
	value, xt, found = b.db.live(dst[at:])
	return value, xt, found, nil
}

// read returns the live record of key. The value is valid until the next read.
func (b *batch) read(key []byte) (value []byte, found bool, err error) {
	value, _, found, err = b.scratch(b.owed, key)
	return value, found, err
}

// set adds an update that stores value, which expires at the absolute time xt.
func (b *batch) set(key, value []byte, xt int64) { b.setJoined(key, value, nil, xt) }

// setJoined is set for a value in two parts.
func (b *batch) setJoined(key, head, tail []byte, xt int64) {
	if len(head)+len(tail) > record.MaxValueSize {
		b.err = dberr.ErrLongValue
		return
	}
	if err := b.makeRoom(record.XTSize + len(head) + len(tail)); err != nil {
		b.err = err
		return
	}
	at := len(b.room)
	if !b.db.persistent() {
		b.room = record.AppendXT(b.room, xt)
	}
	b.room = pieces.Append(pieces.Append(b.room, head), tail)
	b.add(ulog.OpSet, key, b.room[at:len(b.room):len(b.room)])
	if len(b.room)-at > keepRoom { // or the room may be used again
		b.ups[len(b.ups)-1].Stays, b.stays = true, true
	}
}

// makeRoom makes room for a stored value of n bytes. Earlier updates keep the array that they are
// in, and nothing is copied: a bulk of large values would otherwise be copied again and again.
func (b *batch) makeRoom(n int) error {
	if n <= cap(b.room)-len(b.room) {
		return nil
	}
	if n >= store.LargeValue {
		if _, err := b.owed.Large(n); err != nil {
			return systemError(err)
		}
	}
	b.room = make([]byte, 0, max(n, min(2*cap(b.room), keepRoom), leastRoom))
	return nil
}

// setInPlace is set for a large value behind Headroom bytes that nobody needs any more. All of them
// must stay as they are until the log has been waited for.
func (b *batch) setInPlace(key, room []byte, xt int64) {
	if len(room)-record.Headroom > record.MaxValueSize {
		b.err = dberr.ErrLongValue
	}
	b.add(ulog.OpSet, key, b.db.inPlace(room, xt))
	b.ups[len(b.ups)-1].Stays, b.stays = true, true
}

// put adds an update that stores a value: the value of e, which has gone ahead; else the value in
// room; else a copy of value.
func (b *batch) put(e *early, key, value, room []byte, xt int64) {
	switch {
	case e != nil:
		b.early = e
		b.setInPlace(key, e.room, e.xt)
	case room != nil:
		b.setInPlace(key, room, xt)
	default:
		b.set(key, value, xt)
	}
}

func (b *batch) remove(key []byte) { b.add(ulog.OpRemove, key, nil) }

func (b *batch) add(op ulog.Op, key, value []byte) { b.addFrom(b.db.sid, op, key, value) }

// addFrom adds an update that the server sid has made.
func (b *batch) addFrom(sid uint16, op ulog.Op, key, value []byte) {
	if op == ulog.OpSet && !b.db.persistent() {
		if xt, _, _ := record.Split(value); xt != record.MaxXT {
			b.mortals++
		}
	}
	b.ups = append(b.ups, ulog.Update{SID: sid, DBID: b.db.index, Op: op, Key: key, Value: value})
}

var _ store.Reader = (*glance)(nil)

// exists reports whether there is a live record of key.
func (b *batch) exists(key []byte) (bool, error) {
	_, _, found, err := b.look(key)
	return found, err
}

// look returns the size of the live record of key. A large value is not copied.
func (b *batch) look(key []byte) (size int, xt int64, found bool, err error) {
	b.glance.size = 0
	value, xt, found, err := b.live(&b.glance, b.old[:0], key)
	if cap(value) > cap(b.old) {
		b.old = value[:0]
	}
	if b.glance.size > 0 {
		return b.glance.size - b.db.prefixSize(), xt, found, err
	}
	return len(value), xt, found, err
}

// scratch reads a record into the batch's scratch, which lasts until the next read. When the
// scratch was too small, its memory is given back to the purse.
func (b *batch) scratch(p *Pending, key []byte) (value []byte, xt int64, found bool, err error) {
	before := p.Taken()
	value, xt, found, err = b.live(p, b.old[:0], key)
	if cap(value) > cap(b.old) {
		b.old = value[:0]
	}
	if n := p.Taken() - before; n > 0 {
		p.GiveBack(p.Taken() - b.held)
		b.held = n
	}
	return value, xt, found, err
}
