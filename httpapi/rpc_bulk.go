package httpapi

import "gotycoon/db"

// Procedures on many records (section 7). Their rows are the inputs whose names begin with an underscore, in the
// order of the names.

// bulk calls visit with name and value of each row, until visit returns false.
func (s *Session) bulk(visit func(name, value []byte) bool) {
	s.in.Sort()
	for row := range s.in.All() {
		if len(row.Name) > 0 && row.Name[0] == '_' && !visit(row.Name, row.Value) {
			return
		}
	}
}

// piece is how many records of a bulk that is not atomic are given to the database at once: a table of all of them would take more
// than the request.
const piece = 256

// inPieces calls add for each row, which returns how many records have gathered, and do when they are enough and at the end. An atomic
// bulk is one piece: so there must be memory for the table, and for what the commit makes of it.
func (s *Session) inPieces(atomic bool, add func(name, value []byte) (gathered int), do func() error) error {
	var err error
	s.bulk(func(name, value []byte) bool {
		n := add(name, value)
		if atomic {
			size := atomicRecord + len(name)
			if len(value) < db.LargeValue { // of others the database asks
				size += len(value)
			}
			s.lack = s.c.Hold(size)
			return s.lack == nil
		}
		if n == piece {
			err = do()
		}
		return err == nil
	})
	if err == nil && s.lack == nil {
		err = do()
	}
	return err
}

// atomicRecord is what a record of an atomic bulk takes beside its bytes: a row of the table, which doubles when it grows, and the update.
const atomicRecord = 512

func rpcSetBulk(s *Session) error {
	xt, atomic := s.xt(), s.in.Has("atomic")
	s.records = s.records[:0]
	stored := 0
	err := s.inPieces(atomic, func(name, value []byte) int {
		s.records = append(s.records, db.Record{Key: name[1:], Value: value, XT: xt})
		return len(s.records)
	}, func() error {
		n, err := s.call.db.SetBulk(&s.c.Owed, s.records, atomic)
		s.h.opts.Counts.Set.Add(int64(len(s.records)))
		s.records = s.records[:0]
		stored += n
		return err
	})
	if err != nil {
		return err
	}
	s.outInt("num", int64(stored))
	return nil
}

// addKey adds the key of a row to those of the piece.
func (s *Session) addKey(name, _ []byte) (gathered int) {
	s.keys = append(s.keys, name[1:])
	return len(s.keys)
}

func rpcRemoveBulk(s *Session) error {
	atomic := s.in.Has("atomic")
	s.keys = s.keys[:0]
	removed := 0
	err := s.inPieces(atomic, s.addKey, func() error {
		n, err := s.call.db.RemoveBulk(&s.c.Owed, s.keys, atomic)
		s.h.opts.Counts.Remove.Add(int64(len(s.keys)))
		s.h.opts.Counts.RemoveMisses.Add(int64(len(s.keys) - n))
		s.keys = s.keys[:0]
		removed += n
		return err
	})
	if err != nil {
		return err
	}
	s.outInt("num", int64(removed))
	return nil
}

func rpcGetBulk(s *Session) error {
	atomic := s.in.Has("atomic")
	s.keys = s.keys[:0]
	hits := 0
	err := s.inPieces(atomic, s.addKey, func() error {
		if err := s.heed(); err != nil {
			return err
		}
		before := hits
		err := s.call.db.GetBulk(&s.c.Owed, s.keys, atomic, func(i int, value []byte, _ int64) {
			s.out.Add(s.internBytes("_", s.keys[i]), s.internBytes("", value))
			hits++
		})
		s.h.opts.Counts.Get.Add(int64(len(s.keys)))
		s.h.opts.Counts.GetMisses.Add(int64(len(s.keys) - (hits - before)))
		s.keys = s.keys[:0]
		if err == nil {
			err = s.short()
		}
		return err
	})
	if err != nil {
		return err
	}
	s.outInt("num", int64(hits))
	return nil
}
