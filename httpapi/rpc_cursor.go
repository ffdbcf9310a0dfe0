package httpapi

import (
	"fmt"

	"gotycoon/internal/lenient"
)

const (
	// maxCursors is how many cursors a connection may have. The original has no limit.
	maxCursors = 10_000

	// cursorCost is what a cursor takes beside its key: itself and its place in the table.
	cursorCost = 256
)

// pickCursor finds the cursor CUR of a call, or makes it if the connection has none of that number.
// An existing cursor keeps its database.
func (c *call) pickCursor(text []byte) error {
	id, ok := lenient.Natural(text)
	if !ok || id < 0 {
		return nil
	}
	c.curID, c.cur = id, c.cursors[id]
	if c.cur != nil || c.db == nil {
		return nil
	}
	if len(c.cursors) >= maxCursors {
		return errManyCursors
	}
	if err := c.conn.Keep(cursorCost); err != nil {
		return err
	}
	if c.cursors == nil {
		c.cursors = make(map[int64]*cursor)
	}
	c.cur = &cursor{c.db, c.db.NewCursor(), cursorCost}
	c.cur.pos.Heed = c.heed
	c.curNew = true
	c.cursors[id] = c.cur
	return nil
}

// weighCursor counts the key that the call has left its cursor on. A cursor for whose key there is
// no memory is ended. A cursor that the call itself has ended counts no more.
func (c *call) weighCursor() error {
	cur := c.cur
	if c.cursors[c.curID] != cur {
		return nil
	}
	cost := cursorCost + cur.pos.Size()
	if cost == cur.cost {
		return nil
	}
	if err := c.conn.Keep(cost - cur.cost); err != nil {
		c.dropCursor()
		return err
	}
	cur.cost = cost
	return nil
}

// dropCursor ends the cursor of the call.
func (c *call) dropCursor() {
	_ = c.conn.Keep(-c.cur.cost) // giving back never fails
	delete(c.cursors, c.curID)
}

func (c *call) closeCursors() { c.cursors = nil }

func rpcCurJump(c *call) error {
	if key, ok := c.in.Get("key"); ok {
		return c.cur.pos.JumpKey(&c.conn.Owed, key)
	}
	return c.cur.pos.Jump(&c.conn.Owed)
}

func rpcCurJumpBack(c *call) error {
	if key, ok := c.in.Get("key"); ok {
		return c.cur.pos.JumpBackKey(&c.conn.Owed, key)
	}
	return c.cur.pos.JumpBack(&c.conn.Owed)
}

func rpcCurStep(c *call) error { return c.cur.pos.Step(&c.conn.Owed) }

func rpcCurStepBack(c *call) error { return c.cur.pos.StepBack(&c.conn.Owed) }

func rpcCurSetValue(c *call) error {
	value, err := c.in.need("value")
	if err != nil {
		return err
	}
	return c.cur.pos.SetValue(&c.conn.Owed, value, c.in.xt(), c.in.Has("step"))
}

func rpcCurRemove(c *call) error { return c.cur.pos.Remove(&c.conn.Owed) }

func rpcCurGetKey(c *call) error {
	key, err := c.cur.pos.GetKey(&c.conn.Owed, c.in.Has("step"))
	if err != nil {
		return err
	}
	c.out.add("key", key)
	return nil
}

func rpcCurGetValue(c *call) error {
	_, value, _, err := c.cur.pos.Get(&c.conn.Owed, c.in.Has("step"))
	if err != nil {
		return err
	}
	c.out.add("value", value)
	return nil
}

func rpcCurGet(c *call) error {
	key, value, xt, err := c.cur.pos.Get(&c.conn.Owed, c.in.Has("step"))
	return c.outCursor(key, value, xt, err)
}

// rpcCurCheck tells of a cursor's record what rpcCheck tells of a key's.
func rpcCurCheck(c *call) error {
	key, value, xt, err := c.cur.pos.Get(&c.conn.Owed, c.in.Has("step"))
	if err != nil {
		return err
	}
	c.out.add("key", key)
	c.out.addInt("vsiz", int64(len(value)))
	c.out.addXT(xt)
	return nil
}

// rpcCurSeize gets a record and removes it. As with rpcSeize the reply always leaves.
func rpcCurSeize(c *call) error {
	key, value, xt, err := c.cur.pos.Seize(&c.conn.Owed)
	c.conn.Overdraw()
	return c.outCursor(key, value, xt, err)
}

func (c *call) outCursor(key, value []byte, xt int64, err error) error {
	if err != nil {
		return err
	}
	c.out.add("key", key)
	c.out.add("value", value)
	c.out.addXT(xt)
	return nil
}

// rpcCurDelete ends a cursor; the call then sends no signal. For a number that was not in use a
// cursor has just been made, as for every procedure: this cursor stays, and the answer is "not
// implemented".
func rpcCurDelete(c *call) error {
	if c.cur == nil || c.curNew {
		return fmt.Errorf("%w: cur_delete", errNotImplemented)
	}
	c.dropCursor()
	c.mute = true
	return nil
}
