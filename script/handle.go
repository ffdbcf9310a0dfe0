package script

import (
	"errors"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
	"gotycoon/db/dberr"
)

// newDB makes a database object.
func (s *state) newDB(h *handle) *lua.LTable {
	t := s.object(s.classes.dbMembers, s.classes.dbMeta)
	t.RawSetString("db_ptr_", s.userdata(h))
	return t
}

// handleOf returns the database of an object.
func (c call) handleOf(i int) *handle { return kept[*handle](c, i, "db_ptr_") }

// kept returns what an object keeps in a field of its table, and refuses other arguments.
func kept[T any](c call, i int, field string) (value T) {
	t, ok := c.l.Get(i).(*lua.LTable)
	if !ok {
		c.refuse()
	}
	u, ok := t.RawGetString(field).(*lua.LUserData)
	if !ok {
		c.refuse()
	}
	if value, ok = u.Value.(T); !ok {
		c.refuse()
	}
	return value
}

// note remembers an error, and reports whether there was none.
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

// refuse remembers why an operation is not possible now.
func (h *handle) refuse(message string) bool {
	h.code, h.message = dberr.InvalidOperation, message
	return false
}

// do runs an operation on the database, or on the transaction of this call, and remembers its
// error. A call that holds another database takes a hold on this one, too, for the time of the
// operation: see holds.
func (h *handle) do(c call, op func(d *db.DB) error) bool {
	if h.db == nil {
		return h.refuse("not opened")
	}
	if h.busy > 0 {
		c.raise("the database is being visited by this script")
	}
	if h.served && h.s.holder.any() {
		h.hold(c)
		defer h.release()
	}
	before := h.s.owed.Taken()
	defer h.s.owed.GiveBack(before) // the room counts what the script has read
	return h.note(op(h.current()))
}

// current returns the view of the database that operations use: the transaction of this call, or
// the database itself.
func (h *handle) current() *db.DB {
	if h.tx != nil {
		return h.tx.DB()
	}
	return h.db
}

// pending returns where an operation adds its updates. The reply of the call waits for updates of
// the server's databases, and state.end for those of the script's own databases.
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

// hold takes a hold on the database, or raises an error.
func (h *handle) hold(c call) {
	if h.s.pool.holds.take(h.s.holder, h.db, h.s.leash.done) {
		return
	}
	h.s.leash.check(c.l)
	c.raise("deadlock: another call holds this database and waits for one that this call holds")
}

func (h *handle) release() { h.s.pool.holds.give(h.s.holder, h.db) }

// visit is do for an operation that runs functions of the script while records are locked.
func (h *handle) visit(c call, op func(d *db.DB) error) bool {
	ok := h.do(c, func(d *db.DB) error {
		if h.served {
			h.hold(c)
			defer h.release()
		}
		p := h.pending()
		lingers := p.Lingers
		p.Lingers = true
		h.busy++
		defer func() { h.busy, p.Lingers = h.busy-1, lingers }()
		return op(d)
	})
	h.s.leash.check(c.l) // errors of a visitor are ignored, but not a stop
	return ok
}

// awaitUpdates waits until the updates of a database of the script's own are durable.
func (h *handle) awaitUpdates() error {
	h.dirty = false
	return h.owed.Wait()
}

// A transaction belongs to the call that has begun it: until that call returns, no other call or
// client sees its updates or adds to them. If the call returns and leaves the transaction open, all
// clients share it, as in the original: their updates become part of it, and any call can end it.

// begin begins a transaction of this call.
func (h *handle) begin(c call, hard bool) bool {
	if h.db == nil {
		return h.refuse("not opened")
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
		// Another call has left a transaction open. The call that ends it must not wait for this
		// call.
		h.release()
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

// await waits for an event, or raises an error if the script has to stop.
func (s *state) await(c call, event <-chan struct{}) {
	select {
	case <-event:
	case <-s.leash.done:
		s.leash.check(c.l)
	}
}

// finish ends the transaction of this call, or a transaction that an earlier call has left open.
func (h *handle) finish(c call, commit bool) bool {
	if h.db == nil {
		return h.refuse("not opened")
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
		return h.refuse("not in transaction")
	case commit:
		return h.note(tx.Commit(h.pending()))
	}
	return h.note(tx.Abort())
}

func dbBeginTransaction(c call) int { return c.pushBool(c.handleOf(1).begin(c, c.flag(2, false))) }

func dbEndTransaction(c call) int { return c.pushBool(c.handleOf(1).finish(c, c.flag(2, true))) }

// dbTransaction commits if the function returns a true value. An error of the function aborts the
// transaction, and is raised again.
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
