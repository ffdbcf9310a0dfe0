package httpapi

import "fmt"

// Procedures on cursors (section 9).

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
	value, err := s.param("value")
	if err != nil {
		return err
	}
	return s.call.cur.pos.SetValue(&s.c.Owed, value, s.xt(), s.in.Has("step"))
}

func rpcCurRemove(s *Session) error { return s.call.cur.pos.Remove(&s.c.Owed) }

func rpcCurGetKey(s *Session) error {
	key, err := s.call.cur.pos.GetKey(&s.c.Owed, s.in.Has("step"))
	if err != nil {
		return err
	}
	s.outBytes("key", key)
	return nil
}

func rpcCurGetValue(s *Session) error {
	value, err := s.call.cur.pos.GetValue(&s.c.Owed, s.in.Has("step"))
	if err != nil {
		return err
	}
	s.outBytes("value", value)
	return nil
}

func rpcCurGet(s *Session) error {
	key, value, xt, err := s.call.cur.pos.Get(&s.c.Owed, s.in.Has("step"))
	return s.outCursor(key, value, xt, err)
}

// rpcCurSeize gets a record and removes it.
func rpcCurSeize(s *Session) error {
	key, value, xt, err := s.call.cur.pos.Seize(&s.c.Owed)
	s.c.Overdraw() // the record is gone
	return s.outCursor(key, value, xt, err)
}

func (s *Session) outCursor(key, value []byte, xt int64, err error) error {
	if err != nil {
		return err
	}
	s.outBytes("key", key)
	s.outBytes("value", value)
	s.outXT(xt)
	return nil
}

// rpcCurDelete ends a cursor; the call then sends no signal. Of a number that is not in use it makes a cursor, like
// every other procedure, and says that it is not implemented.
func rpcCurDelete(s *Session) error {
	if s.call.cur == nil || s.call.curNew {
		return fmt.Errorf("%w: cur_delete", errNotImplemented)
	}
	s.dropCursor()
	s.call.mute = true
	return nil
}
