package httpapi

import (
	"math"

	"gotycoon/db/record"
	"gotycoon/internal/lenient"
)

// Procedures on one record.

// largeValue is the size from which on a value is stored from where it is, without a copy: the
// database writes the expiration time into the record.Headroom bytes in front of the value. The
// buffer of a large request is not used again, and no more is read into it before the log has been
// waited for.
const largeValue = 1 << 20

// inPlace returns a large value of the body with record.Headroom bytes in front of it, which the
// database may overwrite (see largeValue). They are the end of the row's name, and nobody looks at
// "value" any more. It returns nil for a small value, and for a value that is not in the body as it
// came (Base64).
func (c *call) inPlace(value []byte) (room []byte) {
	body := c.req.Body()
	at := cap(body) - cap(value) // where the value begins, if it is a part of body
	if len(value) < largeValue || at < record.Headroom || at+len(value) > len(body) || &body[at] != &value[0] {
		return nil
	}
	return body[at-record.Headroom : at+len(value)]
}

func rpcSet(c *call) error {
	key, value, err := c.in.keyAnd("value")
	if err != nil {
		return err
	}
	if room := c.inPlace(value); room != nil {
		return c.db.StoreInPlace(&c.conn.Owed, key, room, c.in.xt(), record.Anyway)
	}
	return c.db.Set(&c.conn.Owed, key, value, c.in.xt())
}

func rpcAdd(c *call) error {
	key, value, err := c.in.keyAnd("value")
	if err != nil {
		return err
	}
	if room := c.inPlace(value); room != nil {
		return c.db.StoreInPlace(&c.conn.Owed, key, room, c.in.xt(), record.WhenNew)
	}
	return c.db.Add(&c.conn.Owed, key, value, c.in.xt())
}

func rpcReplace(c *call) error {
	key, value, err := c.in.keyAnd("value")
	if err != nil {
		return err
	}
	if room := c.inPlace(value); room != nil {
		return c.db.StoreInPlace(&c.conn.Owed, key, room, c.in.xt(), record.WhenThere)
	}
	return c.db.Replace(&c.conn.Owed, key, value, c.in.xt())
}

func rpcAppend(c *call) error {
	key, value, err := c.in.keyAnd("value")
	if err != nil {
		return err
	}
	return c.db.Append(&c.conn.Owed, key, value, c.in.xt())
}

// rpcCas compares with oval and stores nval. Absent, oval means no record and nval no record from
// now on.
func rpcCas(c *call) error {
	key, err := c.in.need("key")
	if err != nil {
		return err
	}
	return c.db.CAS(&c.conn.Owed, key, c.in.orNil("oval"), c.in.orNil("nval"), c.in.xt())
}

func rpcRemove(c *call) error {
	key, err := c.in.need("key")
	if err != nil {
		return err
	}
	return c.db.Remove(&c.conn.Owed, key)
}

// rpcTouch gives a record another expiration time.
func rpcTouch(c *call) error {
	key, err := c.in.need("key")
	if err != nil {
		return err
	}
	return c.db.Touch(&c.conn.Owed, key, c.in.xt())
}

func rpcGet(c *call) error {
	key, err := c.in.need("key")
	if err != nil {
		return err
	}
	value, xt, err := c.db.Get(&c.conn.Owed, c.out.value[:0], key)
	return c.outValue(value, xt, err)
}

// rpcSeize gets a record and removes it. The reply leaves whatever memory there is: the record is
// gone, and a reply that was refused would lose the record to its client.
func rpcSeize(c *call) error {
	key, err := c.in.need("key")
	if err != nil {
		return err
	}
	value, xt, err := c.db.Seize(&c.conn.Owed, c.out.value[:0], key)
	c.conn.Overdraw()
	return c.outValue(value, xt, err)
}

func (c *call) outValue(value []byte, xt int64, err error) error {
	if err != nil {
		return err
	}
	c.out.keep(value)
	c.out.add("value", value)
	c.out.addXT(xt)
	return nil
}

func rpcCheck(c *call) error {
	key, err := c.in.need("key")
	if err != nil {
		return err
	}
	size, xt, err := c.db.Check(&c.conn.Owed, key)
	if err != nil {
		return err
	}
	c.out.addInt("vsiz", int64(size))
	c.out.addXT(xt)
	return nil
}

func rpcIncrement(c *call) error {
	key, num, err := c.in.keyAnd("num")
	if err != nil {
		return err
	}
	text, _ := c.in.Get("orig")
	var orig int64 // in the form that db.Increment takes
	switch string(text) {
	case "try":
		orig = math.MinInt64
	case "set":
		orig = math.MaxInt64
	default:
		orig = lenient.Int(text)
	}
	sum, err := c.db.Increment(&c.conn.Owed, key, lenient.Int(num), orig, c.in.xt())
	if err != nil {
		return err
	}
	c.out.addInt("num", sum)
	return nil
}

func rpcIncrementDouble(c *call) error {
	key, num, err := c.in.keyAnd("num")
	if err != nil {
		return err
	}
	text, _ := c.in.Get("orig")
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
	sum, err := c.db.IncrementDouble(&c.conn.Owed, key, lenient.Float(num), orig, c.in.xt())
	if err != nil {
		return err
	}
	c.out.addFloat("num", sum)
	return nil
}
