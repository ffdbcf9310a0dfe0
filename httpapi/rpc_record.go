package httpapi

import (
	"math"

	"gotycoon/db/record"
	"gotycoon/internal/lenient"
)

// Procedures on one record.

// inPlace returns a large value of the body with record.Headroom bytes in front of it, which the
// database may overwrite (see largeValue). They are the end of the row's name, and nobody looks at
// "value" any more. It returns nil for a small value, and for a value that is not in the body as it
// came (Base64).
func (s *Session) inPlace(value []byte) (room []byte) {
	body := s.req.Body()
	at := cap(body) - cap(value) // where the value begins, if it is a part of body
	if len(value) < largeValue || at < record.Headroom || at+len(value) > len(body) || &body[at] != &value[0] {
		return nil
	}
	return body[at-record.Headroom : at+len(value)]
}

func rpcSet(s *Session) error {
	key, value, err := s.in.keyAnd("value")
	if err != nil {
		return err
	}
	if room := s.inPlace(value); room != nil {
		return s.call.db.StoreInPlace(&s.c.Owed, key, room, s.in.xt(), record.Anyway)
	}
	return s.call.db.Set(&s.c.Owed, key, value, s.in.xt())
}

func rpcAdd(s *Session) error {
	key, value, err := s.in.keyAnd("value")
	if err != nil {
		return err
	}
	if room := s.inPlace(value); room != nil {
		return s.call.db.StoreInPlace(&s.c.Owed, key, room, s.in.xt(), record.WhenNew)
	}
	return s.call.db.Add(&s.c.Owed, key, value, s.in.xt())
}

func rpcReplace(s *Session) error {
	key, value, err := s.in.keyAnd("value")
	if err != nil {
		return err
	}
	if room := s.inPlace(value); room != nil {
		return s.call.db.StoreInPlace(&s.c.Owed, key, room, s.in.xt(), record.WhenThere)
	}
	return s.call.db.Replace(&s.c.Owed, key, value, s.in.xt())
}

func rpcAppend(s *Session) error {
	key, value, err := s.in.keyAnd("value")
	if err != nil {
		return err
	}
	return s.call.db.Append(&s.c.Owed, key, value, s.in.xt())
}

// rpcCas compares with oval and stores nval. Absent, oval means no record and nval no record from
// now on.
func rpcCas(s *Session) error {
	key, err := s.in.need("key")
	if err != nil {
		return err
	}
	return s.call.db.CAS(&s.c.Owed, key, s.in.orNil("oval"), s.in.orNil("nval"), s.in.xt())
}

func rpcRemove(s *Session) error {
	key, err := s.in.need("key")
	if err != nil {
		return err
	}
	return s.call.db.Remove(&s.c.Owed, key)
}

func rpcGet(s *Session) error {
	key, err := s.in.need("key")
	if err != nil {
		return err
	}
	value, xt, err := s.call.db.Get(&s.c.Owed, s.out.value[:0], key)
	return s.outValue(value, xt, err)
}

// rpcSeize gets a record and removes it. The reply leaves whatever memory there is: the record is
// gone, and a reply that was refused would lose the record to its client.
func rpcSeize(s *Session) error {
	key, err := s.in.need("key")
	if err != nil {
		return err
	}
	value, xt, err := s.call.db.Seize(&s.c.Owed, s.out.value[:0], key)
	s.c.Overdraw()
	return s.outValue(value, xt, err)
}

func (s *Session) outValue(value []byte, xt int64, err error) error {
	if err != nil {
		return err
	}
	s.out.keep(value)
	s.out.add("value", value)
	s.out.addXT(xt)
	return nil
}

func rpcCheck(s *Session) error {
	key, err := s.in.need("key")
	if err != nil {
		return err
	}
	size, xt, err := s.call.db.Check(&s.c.Owed, key)
	if err != nil {
		return err
	}
	s.out.addInt("vsiz", int64(size))
	s.out.addXT(xt)
	return nil
}

func rpcIncrement(s *Session) error {
	key, num, err := s.in.keyAnd("num")
	if err != nil {
		return err
	}
	text, _ := s.in.Get("orig")
	var orig int64 // in the form that db.Increment takes
	switch string(text) {
	case "try":
		orig = math.MinInt64
	case "set":
		orig = math.MaxInt64
	default:
		orig = lenient.Int(text)
	}
	sum, err := s.call.db.Increment(&s.c.Owed, key, lenient.Int(num), orig, s.in.xt())
	if err != nil {
		return err
	}
	s.out.addInt("num", sum)
	return nil
}

func rpcIncrementDouble(s *Session) error {
	key, num, err := s.in.keyAnd("num")
	if err != nil {
		return err
	}
	text, _ := s.in.Get("orig")
	var orig float64 // in the form that db.IncrementDouble takes
	switch string(text) {
	case "try":
		orig = math.Inf(-1)
	case "set":
		orig = math.Inf(1)
	default:
		if orig = lenient.Float(text); math.IsNaN(orig) {
			orig = math.Inf(-1)
		}
	}
	sum, err := s.call.db.IncrementDouble(&s.c.Owed, key, lenient.Float(num), orig, s.in.xt())
	if err != nil {
		return err
	}
	s.out.addFloat("num", sum)
	return nil
}
