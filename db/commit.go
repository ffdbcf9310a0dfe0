package db

import (
	"errors"

	"gotycoon/db/dberr"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// modify locks the key, calls body, which reads the record and puts updates into the batch, and
// commits the batch, also when body returns an error: a remove that finds nothing is logged all the
// same.
func (d *core) modify(p *Pending, key []byte, h how, body func(b *batch) error) error {
	if err := d.writable(key); err != nil {
		return err
	}
	if d.shared != nil {
		_, err := d.shared.modify(p, key, h, body)
		return err
	}
	b := d.newBatch()
	defer b.free()
	if p.MayLinger() {
		one := d.stripes.of(key)
		one.lingering.Add(1)
		defer one.lingering.Add(-1)
	}
	stripe, err := d.lockKey(p, key)
	if err != nil {
		return err
	}
	b.stripe, b.owed = stripe, p
	err = body(b)
	commitErr := d.commit(p, b)
	if !b.logged && !dberr.Unavailable(commitErr) { // a refusal tells nothing of the record
		b.oweBatch(p)
	}
	b.stripe.Unlock()
	if commitErr == nil {
		d.sweeper.touch(writeScore)
	}
	if waitErr := d.waitUnlessOwed(p, b); waitErr != nil {
		return waitErr
	}
	if commitErr != nil {
		return commitErr
	}
	return err
}

// examine is modify for an operation that may only read; such a call works on a read-only database
// too.
func (d *core) examine(p *Pending, key []byte, onlyReads bool, body func(b *batch) error) error {
	if !onlyReads {
		return d.modify(p, key, how{}, body)
	}
	b := d.newBatch()
	defer b.free()
	d.sweeper.touch(readScore)
	err := body(b)
	if owed := d.owe(p, key); owed != nil {
		return owed
	}
	return err
}

// writable returns why key cannot be changed now, and waits while too much is waiting for the disk.
// It also looks whether clients may update, so that a refused client need not wait first; the
// decisive look is the one in appendAndApply.
func (d *core) writable(key []byte) error {
	if d.refuses() {
		return d.refusal()
	}
	if err := d.checkKey(key); err != nil {
		return err
	}
	return d.throttle()
}

// clearable returns why a client, or a master, cannot clear the database now.
func (d *core) clearable(client bool) error {
	if client {
		return d.writable(nil)
	}
	if d.readOnly {
		return dberr.ErrReadOnly
	}
	return d.throttle()
}

// throttle waits while too much is waiting for the disk.
func (d *core) throttle() error {
	if d.file == nil {
		return nil
	}
	return systemError(d.file.Throttle())
}

// throttleFor is throttle for a value. A large value has to wait for earlier ones.
func (d *core) throttleFor(value []byte) error {
	if d.file == nil || len(value) < keepRoom {
		return nil
	}
	return systemError(d.file.ThrottleLarge())
}

// lockKey locks the stripe of a key that is to be updated. It returns an error, and has locked
// nothing, when the client of p may not update the key any more: the client's right may have been
// withdrawn while lockKey, or the operation before it, waited.
func (d *core) lockKey(p *Pending, key []byte) (*stripe, error) {
	stripe := d.stripes.of(key)
	for {
		stripe.Lock()
		wait := d.barred(true)
		if wait == nil && p.MayGoOn() {
			return stripe, nil
		}
		stripe.Unlock()
		if err := p.Await(wait); err != nil {
			return nil, err
		}
	}
}

// lockKeys locks the stripes of keys that are to be updated. Its error is as that of lockKey.
func (d *core) lockKeys(p *Pending, keys *stripeSet, joins bool) error {
	for {
		if p.MayLinger() { // the caller has called linger
			d.stripes.lockNow(keys)
		} else {
			d.stripes.lock(keys)
		}
		wait := d.barred(joins)
		if wait == nil && p.MayGoOn() {
			return nil
		}
		d.stripes.unlock(keys)
		if err := p.Await(wait); err != nil {
			return err
		}
	}
}

// commit appends the batch to the log and applies it, in one step for everybody else. The caller
// has locked the stripes of the batch's keys.
func (d *core) commit(p *Pending, b *batch) error {
	if b.err != nil {
		return b.err
	}
	if len(b.ups) == 0 && b.follow == nil {
		return nil
	}
	return d.commitTo(p, b, d.over.Load())
}

// commitTo is commit to the updates of a shared transaction, where over is not nil.
func (d *core) commitTo(p *Pending, b *batch, over *txView) error {
	switch {
	case over != nil:
	case b.early != nil: // it has been admitted, and copied
		b.ups[0].Ahead = b.early.ups[0].Ahead
	default:
		if err := d.admit(b.ups); err != nil {
			return err
		}
		if err := d.confirmable(p, b); err != nil {
			return err
		}
	}
	if b.stays && b.early == nil && over == nil {
		if s, ok := d.store.(store.Preparer); ok {
			s.Prepare(b.ups)
			defer s.Forget(b.ups) // those that have not been applied
		}
	}
	b.confirmed = !b.master && p != nil && !p.Local
	at, err := d.appendAndApply(b, over)
	if err != nil {
		return systemError(err)
	}
	if w := d.watch.Load(); w != nil {
		w.committed(b.ups, b.version)
	}
	if b.mortals > 0 {
		// afterwards, so that a walk that begins now meets the records
		d.sweeper.mortals.Add(b.mortals)
	}
	if d.log == nil || over != nil {
		return nil
	}
	b.logged = true
	if p == nil {
		p = b.ownPending()
	}
	p.Add(d.log, at, at, d.Replicas())
	return nil
}

// confirmable returns why a client's updates are to be refused: not enough other servers are there
// to confirm them. Updates of a master, and the server's own, need no confirmation.
func (d *core) confirmable(p *Pending, b *batch) error {
	if d.log == nil || b.master {
		return nil
	}
	return systemError(p.Admits(d.log, d.Replicas()))
}

// admit returns why there is no room for updates.
func (d *core) admit(ups []ulog.Update) error {
	err := d.fits(ups)
	if errors.Is(err, dberr.ErrNoSpace) {
		return d.gate.RefuseAll()
	}
	return err
}

// fits takes the room for updates, or returns why there is none.
func (d *core) fits(ups []ulog.Update) error {
	return d.gate.Fits(ups, d.log != nil, d.file == nil, d.vital)
}

// appendAndApply changes log and store in one step. Here is the decisive look whether clients may
// update: once SetGuarded has had commitMu, a server that refuses updates appends none, whatever
// the operation has waited for before.
func (d *core) appendAndApply(b *batch, over *txView) (at ulog.Stamp, err error) {
	d.commitMu.Lock()
	defer d.commitMu.Unlock()
	if d.refuses() {
		if !b.master && len(b.ups) > 0 {
			return 0, d.refusal()
		}
	} else if b.renewed != nil {
		b.takeOver()
	}
	if over != nil {
		over.Apply(0, b.ups)
		return 0, nil
	}
	if d.log != nil {
		if at, err = d.log.AppendReplicated(b.ups, b.follow); err != nil {
			return 0, err
		}
		if len(b.ups) > 0 {
			b.mark(at)
		}
	}
	d.store.Apply(at, b.ups)
	if b.follow != nil && d.file != nil {
		d.file.SetPosition(b.follow.State, at-ulog.Stamp(len(b.ups)))
	}
	return at, nil
}

// mark notes the stamp of a commit where readers look for it, before they can see what the commit
// changes.
func (b *batch) mark(at ulog.Stamp) {
	if b.confirmed {
		b.db.clients.Store(uint64(at))
	}
	b.db.last.Store(uint64(at))
	if b.stripe != nil {
		b.stripe.last.Store(uint64(at))
		return
	}
	b.db.stripes.touch(&b.keys, at)
}

// waitUnlessOwed waits until a batch is safe, unless the caller has a Pending and waits itself.
func (d *core) waitUnlessOwed(p *Pending, b *batch) error {
	if p != nil {
		return nil
	}
	return systemError(b.own.Wait())
}
