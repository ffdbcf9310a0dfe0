package httpapi

import "gotycoon/db"

// Procedures on one record (section 7).

// record returns the parameters key and value.
func (s *Session) record() (key, value []byte, err error) {
	key, ok := s.in.Get("key")
	value, alsoOK := s.in.Get("value")
	if !ok || !alsoOK {
		return nil, nil, errInvalidParameters
	}
	return key, value, nil
}

// inPlace returns a large value of the body with db.Headroom bytes in front of it, which are the end of its name: "value" is looked for once
// only. It returns nil for a small value, and for one that is not in the body as it came (Base64).
func (s *Session) inPlace(value []byte) (room []byte) {
	body := s.req.Body()
	at := cap(body) - cap(value) // where the value begins, if it is a part of body
	if len(value) < largeValue || at < db.Headroom || at+len(value) > len(body) || &body[at] != &value[0] {
		return nil
	}
	return body[at-db.Headroom : at+len(value)]
}

func rpcSet(s *Session) error {
	key, value, err := s.record()
	if err != nil {
		return err
	}
	if room := s.inPlace(value); room != nil {
		return s.call.db.SetInPlace(&s.c.Owed, key, room, s.xt())
	}
	return s.call.db.Set(&s.c.Owed, key, value, s.xt())
}

func rpcAdd(s *Session) error {
	key, value, err := s.record()
	if err != nil {
		return err
	}
	if room := s.inPlace(value); room != nil {
		return s.call.db.AddInPlace(&s.c.Owed, key, room, s.xt())
	}
	return s.call.db.Add(&s.c.Owed, key, value, s.xt())
}

func rpcReplace(s *Session) error {
	key, value, err := s.record()
	if err != nil {
		return err
	}
	if room := s.inPlace(value); room != nil {
		return s.call.db.ReplaceInPlace(&s.c.Owed, key, room, s.xt())
	}
	return s.call.db.Replace(&s.c.Owed, key, value, s.xt())
}

func rpcAppend(s *Session) error {
	key, value, err := s.record()
	if err != nil {
		return err
	}
	return s.call.db.Append(&s.c.Owed, key, value, s.xt())
}

// rpcCas compares with oval and stores nval. Absent, oval means no record and nval no record from now on.
func rpcCas(s *Session) error {
	key, err := s.param("key")
	if err != nil {
		return err
	}
	return s.call.db.CAS(&s.c.Owed, key, s.optional("oval"), s.optional("nval"), s.xt())
}

// optional returns a parameter that is not nil when it is there, even if it is empty.
func (s *Session) optional(name string) []byte {
	value, ok := s.in.Get(name)
	if ok && value == nil {
		return []byte{}
	}
	return value
}

func rpcRemove(s *Session) error {
	key, err := s.param("key")
	if err != nil {
		return err
	}
	return s.call.db.Remove(&s.c.Owed, key)
}

func rpcGet(s *Session) error {
	key, err := s.param("key")
	if err != nil {
		return err
	}
	value, xt, err := s.call.db.Get(&s.c.Owed, s.value[:0], key)
	return s.outRecord(value, xt, err)
}

// rpcSeize gets a record and removes it.
func rpcSeize(s *Session) error {
	key, err := s.param("key")
	if err != nil {
		return err
	}
	value, xt, err := s.call.db.Seize(&s.c.Owed, s.value[:0], key)
	s.c.Overdraw() // the record is gone
	return s.outRecord(value, xt, err)
}

func (s *Session) outRecord(value []byte, xt int64, err error) error {
	if err != nil {
		return err
	}
	s.keepValue(value)
	s.outBytes("value", value)
	s.outXT(xt)
	return nil
}

// rpcCheck tells the size of a value.
func rpcCheck(s *Session) error {
	key, err := s.param("key")
	if err != nil {
		return err
	}
	size, xt, err := s.call.db.Check(&s.c.Owed, key)
	if err != nil {
		return err
	}
	s.outInt("vsiz", int64(size))
	s.outXT(xt)
	return nil
}
