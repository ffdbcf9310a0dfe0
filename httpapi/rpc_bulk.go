package httpapi

import "gotycoon/db"

// Procedures on many records (section 7). Their rows are the inputs whose names begin with an underscore, in the
// order of the names.

// bulk calls visit with name and value of each row.
func (s *Session) bulk(visit func(name, value []byte)) {
	s.in.Sort()
	for _, row := range s.in.List() {
		if len(row.Name) > 0 && row.Name[0] == '_' {
			visit(row.Name, row.Value)
		}
	}
}

// bulkKeys returns the keys of the rows.
func (s *Session) bulkKeys() [][]byte {
	s.keys = s.keys[:0]
	s.bulk(func(name, _ []byte) { s.keys = append(s.keys, name[1:]) })
	return s.keys
}

func rpcSetBulk(s *Session) error {
	xt := s.xt()
	s.records = s.records[:0]
	s.bulk(func(name, value []byte) {
		s.records = append(s.records, db.Record{Key: name[1:], Value: value, XT: xt})
	})
	n, err := s.call.db.SetBulk(&s.c.Owed, s.records, s.in.Has("atomic"))
	s.h.opts.Counts.Set.Add(int64(len(s.records)))
	if err != nil {
		return err
	}
	s.outInt("num", int64(n))
	return nil
}

func rpcRemoveBulk(s *Session) error {
	keys := s.bulkKeys()
	n, err := s.call.db.RemoveBulk(&s.c.Owed, keys, s.in.Has("atomic"))
	s.h.opts.Counts.Remove.Add(int64(len(keys)))
	s.h.opts.Counts.RemoveMisses.Add(int64(len(keys) - n))
	if err != nil {
		return err
	}
	s.outInt("num", int64(n))
	return nil
}

func rpcGetBulk(s *Session) error {
	keys := s.bulkKeys()
	hits := 0
	err := s.getInRuns(keys, func(key, value []byte) {
		s.out.Add(s.internBytes("_", key), s.internBytes("", value))
		hits++
	})
	s.h.opts.Counts.Get.Add(int64(len(keys)))
	s.h.opts.Counts.GetMisses.Add(int64(len(keys) - hits))
	if err != nil {
		return err
	}
	s.outInt("num", int64(hits))
	return nil
}

// runKeys is how many records are read before a look at the client.
const runKeys = 256

// getInRuns reads the records of keys: those of an atomic call at once, others in runs.
func (s *Session) getInRuns(keys [][]byte, visit func(key, value []byte)) error {
	if s.in.Has("atomic") {
		return s.call.db.GetBulk(&s.c.Owed, keys, true, func(i int, value []byte, _ int64) { visit(keys[i], value) })
	}
	for len(keys) > 0 {
		if err := s.heed(); err != nil {
			return err
		}
		run := keys[:min(len(keys), runKeys)]
		if err := s.call.db.GetBulk(&s.c.Owed, run, false, func(i int, value []byte, _ int64) { visit(run[i], value) }); err != nil {
			return err
		}
		keys = keys[len(run):]
	}
	return nil
}
