package script

import (
	"slices"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db/dberr"
)

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
