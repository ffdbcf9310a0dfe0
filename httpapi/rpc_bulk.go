package httpapi

import (
	"gotycoon/db"
	"gotycoon/db/store"
)

// Procedures on many records. The records are the rows of the input whose names begin with an
// underscore, in the order of the names.

// addKey adds the key of a row.
func (b *bulk) addKey(name, _ []byte) (gathered int) {
	b.keys = append(b.keys, name[1:])
	return len(b.keys)
}

const (
	// piece is how many records of a bulk that is not atomic are given to the database at once: a
	// table of all of them would take more memory than the request.
	piece = 256

	// atomicRecord is what a record of an atomic bulk takes beside its bytes: the row of the table,
	// which doubles when it grows, and the update.
	atomicRecord = 512
)

// inPieces calls add for each record, which returns how many records have gathered, and do when
// they are enough and at the end. An atomic bulk is one piece: there must be memory for the table,
// and for what the commit makes of it.
func (c *call) inPieces(atomic bool, add func(name, value []byte) (gathered int), do func() error) error {
	var err error
	c.in.records(func(name, value []byte) bool {
		n := add(name, value)
		if atomic {
			size := atomicRecord + len(name)
			if len(value) < store.LargeValue { // for larger ones the database asks
				size += len(value)
			}
			return c.out.hold(size) == nil
		}
		if n == piece {
			err = do()
		}
		return err == nil
	})
	if err == nil && c.out.lack == nil {
		err = do()
	}
	return err
}

func rpcSetBulk(c *call) error {
	xt, atomic := c.in.xt(), c.in.Has("atomic")
	b := &c.bulk
	b.records = b.records[:0]
	stored := 0
	err := c.inPieces(atomic, func(name, value []byte) int {
		b.records = append(b.records, db.Record{Key: name[1:], Value: value, XT: xt})
		return len(b.records)
	}, func() error {
		n, err := c.db.SetBulk(&c.conn.Owed, b.records, atomic)
		c.opts.Counts.Set.Add(int64(len(b.records)))
		b.records = b.records[:0]
		stored += n
		return err
	})
	if err != nil {
		return err
	}
	c.out.addInt("num", int64(stored))
	return nil
}

func rpcRemoveBulk(c *call) error {
	atomic := c.in.Has("atomic")
	b := &c.bulk
	b.keys = b.keys[:0]
	removed := 0
	err := c.inPieces(atomic, b.addKey, func() error {
		n, err := c.db.RemoveBulk(&c.conn.Owed, b.keys, atomic)
		c.opts.Counts.Remove.Add(int64(len(b.keys)))
		c.opts.Counts.RemoveMisses.Add(int64(len(b.keys) - n))
		b.keys = b.keys[:0]
		removed += n
		return err
	})
	if err != nil {
		return err
	}
	c.out.addInt("num", int64(removed))
	return nil
}

func rpcGetBulk(c *call) error {
	atomic := c.in.Has("atomic")
	b := &c.bulk
	b.keys = b.keys[:0]
	hits := 0
	err := c.inPieces(atomic, b.addKey, func() error {
		if err := c.heed(); err != nil {
			return err
		}
		before := hits
		err := c.db.GetBulk(&c.conn.Owed, b.keys, atomic, func(i int, value []byte, _ int64) {
			c.out.rows.Add(c.out.internBytes("_", b.keys[i]), c.out.internBytes("", value))
			hits++
		})
		c.opts.Counts.Get.Add(int64(len(b.keys)))
		c.opts.Counts.GetMisses.Add(int64(len(b.keys) - (hits - before)))
		b.keys = b.keys[:0]
		if err == nil {
			err = c.lack()
		}
		return err
	})
	if err != nil {
		return err
	}
	c.out.addInt("num", int64(hits))
	return nil
}
