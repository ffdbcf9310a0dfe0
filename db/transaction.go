package db

import (
	"bytes"
	"errors"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// errEnded: the transaction has been committed or aborted already.
var errEnded = errors.New("the transaction has ended")

// Begin begins a transaction. While another one is open it waits, until stop is closed
// (ErrInterrupted). With hard, the updates are on the disk when Commit returns.
func (d *DB) Begin(stop <-chan struct{}, hard bool) (*Transaction, error) {
	switch {
	case d.refuses():
		return nil, d.refusal()
	case d.expr.Kind == expr.Text:
		return nil, dberr.ErrNoTransaction
	}
	t := newTransaction(&d.core)
	t.hard = hard
	var all stripeSet
	all.all()
	d.stripes.standAside(&all) // before others have to wait for t
	var err error
	if d.shared != nil {
		err = t.beginShared(stop)
	} else {
		err = t.open(stop, nil)
	}
	if err != nil {
		return nil, err
	}
	d.stripes.pass() // whoever has not seen t has its update in the store now
	if d.refuses() { // since the look before the wait
		_ = t.Abort() // it is new
		return nil, d.refusal()
	}
	t.view.generation.Store(d.generation.Load())
	return t, nil
}

// open makes t the open transaction of its database when no other one is, and ends the wait for
// that at stop or at late.
func (t *Transaction) open(stop <-chan struct{}, late <-chan time.Time) error {
	d := t.db
	for !d.tx.CompareAndSwap(nil, t) {
		other := d.tx.Load()
		if other == nil {
			continue
		}
		select {
		case <-other.ended:
		case <-stop:
			return dberr.ErrInterrupted
		case <-late:
			return errTaken
		}
	}
	return nil
}

// Transaction returns the shared transaction that is open, nil when there is none.
func (d *DB) Transaction() *Transaction {
	if t := d.tx.Load(); t != nil && t.shared.Load() {
		return t
	}
	return nil
}

func newTransaction(d *core) *Transaction {
	t := &Transaction{db: d, over: newTxView(d.store, d.expr.Params.RComp, d.ordered()), turned: make(chan struct{}), ended: make(chan struct{})}
	t.view = &DB{core{form: d.form, info: d.info, sid: d.sid, logger: d.logger, store: t.over, file: d.file, versions: versions{file: d.file},
		readOnly: d.readOnly, guard: d.guard, detached: true, base: d, recovery: d.recovery}}
	t.view.stripes.init(false)
	t.view.sweeper.db = &t.view.core
	return t
}

// beginShared is open in a database that an engine keeps, which it locks there. Beside stop,
// -engine-timeout ends the wait: procedures, each with a database that the other one wants, would
// wait for each other for ever, and if they are on two servers no engine sees that.
func (t *Transaction) beginShared(stop <-chan struct{}) error {
	s := t.db.shared
	until := time.Now().Add(s.groups.Timeout())
	limit := time.NewTimer(time.Until(until))
	defer limit.Stop()
	waits := t.db.tx.Load() != nil
	if err := t.open(stop, limit.C); err != nil {
		return err
	}
	l, err := s.lock(stop, until)
	if waits && errors.Is(err, errLocked) {
		err = errTaken // what has taken the time may have been the transaction of this server
	}
	if err == nil {
		err = t.locked(l)
	}
	if err != nil {
		_ = t.Abort() // it is new, or the server is closing and has aborted it
	}
	return err
}

// locked gives a transaction the engine's lock, unless it has been aborted meanwhile.
func (t *Transaction) locked(l *lock) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		t.db.shared.unlock(l)
		return errEnded
	}
	t.lock = l
	return nil
}

// once carries out an operation whose visitor has effects elsewhere, such as a procedure of a
// script, in a database that an engine keeps. A group may run a body several times, so the
// operation gets a transaction.
func (d *DB) once(p *Pending, operation func(view *DB) error) error {
	t, err := d.Begin(nil, false)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done { // the visitor has panicked
			_ = t.Abort()
		}
	}()
	err = operation(t.view)
	done = true
	if ended := t.Commit(p); err == nil {
		err = ended
	}
	return err
}

// commitShared makes the updates of a transaction in the engine.
func (d *core) commitShared(t *Transaction, b *batch) error {
	if d.refuses() {
		return d.refusal()
	}
	l := t.lock
	t.lock = nil // whatever becomes of the commit, the lock ends with it
	if err := d.shared.commit(l, b.ups); err != nil {
		return err
	}
	if w := d.watch.Load(); w != nil {
		w.committed(b.ups, 0)
	}
	return nil
}

// DB returns the database with the collected updates, for the owner before Share.
func (t *Transaction) DB() *DB { return t.view }

// Ended is closed when the transaction is committed or aborted.
func (t *Transaction) Ended() <-chan struct{} { return t.ended }

// Share makes the transaction everybody's.
func (t *Transaction) Share() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone || t.shared.Load() {
		return
	}
	d := t.db
	var all stripeSet
	all.all()
	d.stripes.lock(&all)
	defer d.stripes.unlock(&all)
	d.generation.Store(t.view.generation.Load())
	d.over.Store(t.over)
	t.shared.Store(true)
	close(t.turned)
}

// Commit stores the collected updates, all or none, also when the machine stops. When they cannot
// be stored (no room, or the server refuses updates of clients by now: ErrReadOnly) the transaction
// is aborted: nobody was promised its updates, and an open transaction would keep updates of a
// master waiting.
func (t *Transaction) Commit(p *Pending) error {
	var own Pending
	if p == nil {
		p = &own
	}
	if err := p.Await(nil); err != nil {
		return errors.Join(err, t.Abort())
	}
	err := t.end(func(d *core) error {
		b := d.newBatch()
		defer b.free()
		b.keys.all()
		err := t.over.collect(b)
		if err == nil {
			err = b.err
		}
		switch {
		case err != nil:
		case t.lock != nil:
			err = d.commitShared(t, b)
		case len(b.ups) > 0:
			err = d.commitTo(p, b, nil)
		}
		if err != nil {
			t.forget(d)
			return systemError(err)
		}
		d.generation.Store(max(d.generation.Load(), t.view.generation.Load()))
		return nil
	})
	if err == nil {
		err = systemError(own.Wait())
	}
	if err != nil || !t.hard {
		return err
	}
	return t.db.SyncLog()
}

// Abort forgets the collected updates.
func (t *Transaction) Abort() error {
	return t.end(func(d *core) error {
		t.forget(d)
		return nil
	})
}

// forget drops the collected updates. It unsets cursors that may stand on records which never
// existed.
func (t *Transaction) forget(d *core) {
	if t.lock != nil {
		d.shared.unlock(t.lock)
		t.lock = nil
	}
	d.over.Store(nil)
	if t.over.cleared() || t.shared.Load() {
		d.generation.Add(1)
	}
	if t.shared.Load() {
		d.watch.Load().undone()
	}
}

// end ends the transaction, whatever finish returns.
func (t *Transaction) end(finish func(d *core) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return errEnded
	}
	t.gone = true
	d := t.db
	var all stripeSet
	all.all()
	d.stripes.lock(&all)
	err := finish(d)
	d.over.Store(nil)
	d.tx.Store(nil)
	d.stripes.unlock(&all)
	if !t.shared.Load() {
		close(t.turned)
	}
	close(t.ended)
	return err
}

// collect adds the updates to a batch, a clear first.
func (o *txView) collect(b *batch) error {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if o.hidden {
		b.add(ulog.OpClear, nil, nil)
	}
	return o.tree.Scan(store.Start{Edge: true}, func(key, marked []byte) bool {
		if marked[0] == markSet {
			b.add(ulog.OpSet, bytes.Clone(key), bytes.Clone(marked[1:]))
		} else {
			b.add(ulog.OpRemove, bytes.Clone(key), nil)
		}
		return true
	})
}
