package httpapi

import (
	"errors"
	"fmt"

	"gotycoon/db"
	"gotycoon/internal/lenient"
	"gotycoon/internal/netio"
)

const (
	// maxCursors is how many cursors a connection may have. The original has no limit.
	maxCursors = 10_000

	// cursorCost is what a cursor takes beside its key: itself and its place in the table.
	cursorCost = 256
)

// errManyCursors refuses a cursor.
var errManyCursors = errors.New("too many cursors: a connection may have 10000; " +
	"end some with cur_delete, or use another connection")

// cursor is a cursor of the client, which remembers its database.
type cursor struct {
	db   *db.DB
	pos  *db.Cursor
	cost int // bytes that count in the connection's account
}

// cursorTable is the cursors of a connection. They live until the client ends them, or the
// connection.
type cursorTable struct {
	c    *netio.Conn
	heed db.Heed
	byID map[int64]*cursor // by the client's number; nil until the first one
}

// pick finds the cursor CUR of a call, or makes it if the connection has none of that number. An
// existing cursor keeps its database.
func (t *cursorTable) pick(call *call, in *input) error {
	text, ok := in.Get("CUR")
	if !ok {
		return nil
	}
	id, ok := lenient.Natural(text)
	if !ok || id < 0 {
		return nil
	}
	call.curID, call.cur = id, t.byID[id]
	if call.cur != nil || call.db == nil {
		return nil
	}
	if len(t.byID) >= maxCursors {
		return errManyCursors
	}
	if err := t.c.Keep(cursorCost); err != nil {
		return err
	}
	if t.byID == nil {
		t.byID = make(map[int64]*cursor)
	}
	call.cur = &cursor{call.db, call.db.NewCursor(), cursorCost}
	call.cur.pos.Heed = t.heed
	call.curNew = true
	t.byID[id] = call.cur
	return nil
}

// weigh counts the key that the call has left its cursor on. A cursor for whose key there is no
// memory is ended.
func (t *cursorTable) weigh(call *call) error {
	cur := call.cur
	if cur == nil || t.byID[call.curID] != cur {
		return nil
	}
	cost := cursorCost + cur.pos.Size()
	if cost == cur.cost {
		return nil
	}
	if err := t.c.Keep(cost - cur.cost); err != nil {
		t.drop(call)
		return err
	}
	cur.cost = cost
	return nil
}

// drop ends the cursor of the call.
func (t *cursorTable) drop(call *call) {
	_ = t.c.Keep(-call.cur.cost) // giving back never fails
	delete(t.byID, call.curID)
}

func (t *cursorTable) close() {
	t.byID = nil
}

func rpcCurJump(s *Session) error {
	if key, ok := s.in.Get("key"); ok {
		return s.call.cur.pos.JumpKey(&s.c.Owed, key)
	}
	return s.call.cur.pos.Jump(&s.c.Owed)
}

func rpcCurJumpBack(s *Session) error {
	if key, ok := s.in.Get("key"); ok {
		return s.call.cur.pos.JumpBackKey(&s.c.Owed, key)
	}
	return s.call.cur.pos.JumpBack(&s.c.Owed)
}

func rpcCurStep(s *Session) error { return s.call.cur.pos.Step(&s.c.Owed) }

func rpcCurStepBack(s *Session) error { return s.call.cur.pos.StepBack(&s.c.Owed) }

func rpcCurSetValue(s *Session) error {
	value, err := s.in.need("value")
	if err != nil {
		return err
	}
	return s.call.cur.pos.SetValue(&s.c.Owed, value, s.in.xt(), s.in.Has("step"))
}

func rpcCurRemove(s *Session) error { return s.call.cur.pos.Remove(&s.c.Owed) }

func rpcCurGetKey(s *Session) error {
	key, err := s.call.cur.pos.GetKey(&s.c.Owed, s.in.Has("step"))
	if err != nil {
		return err
	}
	s.out.add("key", key)
	return nil
}

func rpcCurGetValue(s *Session) error {
	_, value, _, err := s.call.cur.pos.Get(&s.c.Owed, s.in.Has("step"))
	if err != nil {
		return err
	}
	s.out.add("value", value)
	return nil
}

func rpcCurGet(s *Session) error {
	key, value, xt, err := s.call.cur.pos.Get(&s.c.Owed, s.in.Has("step"))
	return s.outCursor(key, value, xt, err)
}

// rpcCurSeize gets a record and removes it. As with rpcSeize the reply always leaves.
func rpcCurSeize(s *Session) error {
	key, value, xt, err := s.call.cur.pos.Seize(&s.c.Owed)
	s.c.Overdraw()
	return s.outCursor(key, value, xt, err)
}

func (s *Session) outCursor(key, value []byte, xt int64, err error) error {
	if err != nil {
		return err
	}
	s.out.add("key", key)
	s.out.add("value", value)
	s.out.addXT(xt)
	return nil
}

// rpcCurDelete ends a cursor; the call then sends no signal. Of a number that is not in use it
// makes a cursor, like every other procedure, and says that it is not implemented.
func rpcCurDelete(s *Session) error {
	if s.call.cur == nil || s.call.curNew {
		return fmt.Errorf("%w: cur_delete", errNotImplemented)
	}
	s.cursors.drop(&s.call)
	s.call.mute = true
	return nil
}
