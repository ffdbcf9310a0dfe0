package script

import (
	"errors"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
	"gotycoon/db/dberr"
)

// handle is what a database object of a script stands for.
type handle struct {
	s      *state
	db     *db.DB // nil: not open
	served bool   // a database of the server; else file is the script's own
	file   *file

	tx    *db.Transaction // that this call has begun
	owed  db.Pending      // updates of a database of the script's own
	dirty bool            // there may be some
	busy  int             // visitors that are running

	code    dberr.Code // last error
	message string
}

// handleOf returns the database of an object.
func (c call) handleOf(i int) *handle {
	t, ok := c.l.Get(i).(*lua.LTable)
	if !ok {
		c.refuse()
	}
	u, ok := t.RawGetString("db_ptr_").(*lua.LUserData)
	if !ok {
		c.refuse()
	}
	h, ok := u.Value.(*handle)
	if !ok {
		c.refuse()
	}
	return h
}

// note remembers an error and tells whether there is none.
func (h *handle) note(err error) bool {
	if err == nil {
		return true
	}
	h.code, h.message = dberr.Miscellaneous, err.Error()
	if e, ok := errors.AsType[*dberr.Error](err); ok {
		h.code, h.message = e.Code, e.Message
	}
	return false
}

func (h *handle) fail(code dberr.Code, message string) bool {
	h.code, h.message = code, message
	return false
}

// do runs an operation on the database, or on the transaction of this call, and notes its error. Who holds a database already
// takes a hold on this one, too, for the time of the operation.
func (h *handle) do(c call, op func(d *db.DB) error) bool {
	if h.db == nil {
		return h.fail(dberr.InvalidOperation, "not opened")
	}
	if h.busy > 0 {
		c.raise("the database is being visited by this script")
	}
	if h.served && h.s.holder.any() {
		h.hold(c)
		defer h.release()
	}
	before := h.s.owed.Taken()
	defer h.s.owed.GiveBack(before) // what the script has been given is the interpreter's
	return h.note(op(h.current()))
}

// current is where operations find the records.
func (h *handle) current() *db.DB {
	if h.tx != nil {
		return h.tx.DB()
	}
	return h.db
}

// pending is what the updates of an operation are added to.
func (h *handle) pending() *db.Pending {
	if h.served {
		return h.s.owed
	}
	if !h.dirty {
		h.dirty = true
		h.s.dirty = append(h.s.dirty, h)
	}
	return &h.owed
}

// hold takes a hold on the database.
func (h *handle) hold(c call) {
	if h.s.pool.holds.take(h.s.holder, h.db, h.s.leash.done) {
		return
	}
	h.s.leash.check(c.l)
	c.raise("deadlock: another call holds this database and waits for one that this call holds")
}

func (h *handle) release() { h.s.pool.holds.give(h.s.holder, h.db) }

// visit is do for operations that run functions of the script while something is locked.
func (h *handle) visit(c call, op func(d *db.DB) error) bool {
	ok := h.do(c, func(d *db.DB) error {
		if h.served {
			h.hold(c)
			defer h.release()
		}
		h.busy++
		defer func() { h.busy-- }()
		return op(d)
	})
	h.s.leash.check(c.l) // a visitor's errors are swallowed, its end is not
	return ok
}

// settle waits for what is owed to a database of the script's own.
func (h *handle) settle() error {
	h.dirty = false
	return h.owed.Wait()
}

// Transactions. The one who begins it has it alone for the rest of its call. When the call returns without having ended it, it is
// everybody's, as in the original: any other call can end it, and what clients update meanwhile is part of it.

// begin begins a transaction of this call.
func (h *handle) begin(c call, hard bool) bool {
	if h.db == nil {
		return h.fail(dberr.InvalidOperation, "not opened")
	}
	if h.busy > 0 {
		c.raise("the database is being visited by this script")
	}
	if h.tx != nil {
		c.raise("this call is in a transaction of the database already")
	}
	for {
		if open := h.db.Transaction(); open != nil {
			h.s.await(c, open.Ended())
			continue
		}
		h.hold(c)
		if h.db.Transaction() == nil {
			break
		}
		h.release() // another call has left one open: whoever ends it must not have to wait for us
	}
	tx, err := h.db.Begin(h.s.leash.done, hard)
	if err != nil {
		h.release()
		h.s.leash.check(c.l)
		return h.note(err)
	}
	h.tx = tx
	h.s.begun = append(h.s.begun, h)
	return true
}

// await waits, unless the script has to stop.
func (s *state) await(c call, event <-chan struct{}) {
	select {
	case <-event:
	case <-s.leash.done:
		s.leash.check(c.l)
	}
}

// finish ends the transaction of this call, or the one that is everybody's.
func (h *handle) finish(c call, commit bool) bool {
	if h.db == nil {
		return h.fail(dberr.InvalidOperation, "not opened")
	}
	if h.busy > 0 {
		c.raise("the database is being visited by this script")
	}
	tx := h.tx
	if tx == nil {
		tx = h.db.Transaction()
	} else {
		h.tx = nil
		h.s.begun = slices.DeleteFunc(h.s.begun, func(o *handle) bool { return o == h })
		defer h.release()
	}
	switch {
	case tx == nil:
		return h.fail(dberr.InvalidOperation, "not in transaction")
	case commit:
		return h.note(tx.Commit(h.pending()))
	}
	return h.note(tx.Abort())
}

func dbBeginTransaction(c call) int { return c.pushBool(c.handleOf(1).begin(c, c.flag(2, false))) }

func dbEndTransaction(c call) int { return c.pushBool(c.handleOf(1).finish(c, c.flag(2, true))) }

// dbTransaction commits when the function returns a true value. An error of the function aborts and goes on.
func dbTransaction(c call) int {
	h := c.handleOf(1)
	f, hard := c.l.Get(2), c.flag(3, false)
	if !h.begin(c, hard) {
		return c.pushBool(false)
	}
	if !c.callable(f) {
		h.finish(c, false)
		c.l.Error(lua.LString("attempt to call a "+f.Type().String()+" value"), 0)
	}
	results, err := c.protect(f, 1)
	if h.tx == nil { // the function has ended it
		if err != nil {
			c.again(err)
		}
		return c.pushBool(true)
	}
	ok := h.finish(c, err == nil && lua.LVAsBool(results[0]))
	if err != nil {
		c.again(err)
	}
	return c.pushBool(ok)
}
