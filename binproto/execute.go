package binproto

import (
	"math"

	"gotycoon/access"
	"gotycoon/client/wire/frame"
	"gotycoon/internal/metrics"
	"gotycoon/internal/pieces"
)

// execute carries out the request for the records of the run, in their order, up to the first
// failure.
func (b *bulk) execute() error {
	if b.db == nil {
		return nil
	}
	switch b.head.Magic {
	case frame.SetBulk:
		return b.set()
	case frame.RemoveBulk:
		return b.remove()
	default:
		return b.get()
	}
}

func (b *bulk) set() error {
	n, err := b.db.SetBulk(&b.c.Owed, b.recs, false)
	b.hits += uint32(n)
	b.h.opts.Counts.Set.Add(int64(len(b.recs)))
	return err
}

func (b *bulk) remove() error {
	n, err := b.db.RemoveBulk(&b.c.Owed, b.keys, false)
	b.hits += uint32(n)
	b.h.opts.Counts.Remove.Add(int64(len(b.keys)))
	b.h.opts.Counts.RemoveMisses.Add(int64(len(b.keys) - n))
	return err
}

func (b *bulk) get() error {
	before := b.hits
	err := b.db.GetBulk(&b.c.Owed, b.keys, false, b.visit)
	b.h.opts.Counts.Get.Add(int64(len(b.keys)))
	b.h.opts.Counts.GetMisses.Add(int64(len(b.keys)) - int64(b.hits-before))
	if err == nil {
		err = b.full
	}
	return err
}

// addHit appends the record of the run's i-th key to the reply.
func (b *bulk) addHit(i int, value []byte, xt int64) {
	if b.db.Info().Persistent {
		xt = math.MaxInt64 // the database keeps no expiration times
	}
	if b.full != nil {
		return
	}
	if b.full = b.makeRoom(frame.RecordHead + len(b.keys[i]) + len(value)); b.full != nil {
		return
	}
	b.out = frame.AppendRecordHead(b.out, frame.Record{DBIdx: b.dbidx, XT: xt, Key: b.keys[i], Value: value})
	b.out = pieces.Append(b.out, value)
	b.hits++
}

// makeRoom makes room for n more bytes of the reply. It returns an error if there is no memory for
// them.
func (b *bulk) makeRoom(n int) error {
	if len(b.out)+n <= max(cap(b.out), keepReply) {
		return nil
	}
	room := max(len(b.out)+n, 2*cap(b.out))
	if err := b.c.Hold(room); err != nil {
		return err
	}
	b.out = pieces.Append(make([]byte, 0, room), b.out)
	b.c.LetGo(b.held)
	b.held = room
	return nil
}

// permit returns nil if the client may use the records of the run as the request wants.
func (b *bulk) permit() error {
	v := b.c.Visitor
	if v == nil || b.db == nil {
		return nil
	}
	need := access.Write
	if b.head.Magic == frame.GetBulk {
		need = access.Read
	}
	err := error(nil)
	for i := 0; i < len(b.recs) && err == nil; i++ {
		err = v.Key(need, b.db, b.recs[i].Key)
	}
	for i := 0; i < len(b.keys) && err == nil; i++ {
		err = v.Key(need, b.db, b.keys[i])
	}
	if err != nil {
		b.h.tell(err)
	}
	return err
}

// Current implements owed.Rights.
func (b *bulk) Current() bool { return b.c.Visitor.Current() }

// Renew implements owed.Rights.
func (b *bulk) Renew() error {
	err := b.c.Visitor.Enter()
	if err == nil {
		err = b.permit()
	}
	return err
}

// detail describes a bulk for the log: its size, and the first key and the database of its last
// run.
func (b *bulk) detail() metrics.Detail {
	d := metrics.Detail{In: b.read}
	if b.db != nil {
		d.Database = b.db.Name()
	}
	switch {
	case len(b.recs) > 0:
		d.Key = b.recs[0].Key
	case len(b.keys) > 0:
		d.Key = b.keys[0]
	}
	return d
}
