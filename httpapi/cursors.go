package httpapi

import (
	"errors"

	"gotycoon/db"
	"gotycoon/internal/lenient"
)

const (
	// maxCursors is how many cursors a connection may have. The original has no limit.
	maxCursors = 10_000

	// cursorCost is what a cursor takes beside its key: itself and its place in the connection's table.
	cursorCost = 256
)

// errManyCursors refuses a cursor.
var errManyCursors = errors.New("too many cursors: a connection may have 10000; end some with cur_delete, or use another connection")

// cursor is a cursor of the client, which remembers its database.
type cursor struct {
	db   *db.DB
	pos  *db.Cursor
	cost int // bytes that count
}

// pickCursor finds the cursor CUR, or makes it when the connection has none of that number. An existing one keeps its
// database.
func (s *Session) pickCursor() error {
	text, ok := s.in.Get("CUR")
	if !ok {
		return nil
	}
	id, ok := lenient.Natural(text)
	if !ok || id < 0 {
		return nil
	}
	s.call.curID = id
	s.call.cur = s.cursors[id]
	if s.call.cur != nil || s.call.db == nil {
		return nil
	}
	if len(s.cursors) >= maxCursors {
		return errManyCursors
	}
	if s.lack = s.c.Keep(cursorCost); s.lack != nil {
		return s.lack
	}
	if s.cursors == nil {
		s.cursors = make(map[int64]*cursor)
	}
	s.call.cur = &cursor{s.call.db, s.call.db.NewCursor(), cursorCost}
	s.call.cur.pos.Heed = s.heed
	s.call.curNew = true
	s.cursors[id] = s.call.cur
	return nil
}

// weighCursor counts the key that the call has left the cursor on. A cursor for whose key there is no memory is ended.
func (s *Session) weighCursor() {
	cur := s.call.cur
	if cur == nil || s.cursors[s.call.curID] != cur {
		return
	}
	cost := cursorCost + cur.pos.Size()
	if cost == cur.cost {
		return
	}
	if err := s.c.Keep(cost - cur.cost); err != nil {
		s.lack = err
		s.dropCursor()
		return
	}
	cur.cost = cost
}

// dropCursor ends the cursor of the call.
func (s *Session) dropCursor() {
	cur := s.call.cur
	cur.pos.Close()
	_ = s.c.Keep(-cur.cost) // giving back never fails
	delete(s.cursors, s.call.curID)
}
