package httpapi

// Procedures that list keys (section 8).

func rpcMatchPrefix(s *Session) error {
	prefix, err := s.param("prefix")
	if err != nil {
		return err
	}
	if err := s.beginLong(); err != nil {
		return err
	}
	keys, err := s.call.db.MatchPrefix(s.heed, &s.c.Owed, prefix, s.matchMax(), s.room)
	return s.outKeys(keys, err)
}

func rpcMatchRegex(s *Session) error {
	regex, err := s.param("regex")
	if err != nil {
		return err
	}
	if err := s.beginLong(); err != nil {
		return err
	}
	keys, err := s.call.db.MatchRegex(s.heed, &s.c.Owed, string(regex), s.matchMax(), s.room)
	return s.outKeys(keys, err)
}

func rpcMatchSimilar(s *Session) error {
	origin, err := s.param("origin")
	if err != nil {
		return err
	}
	distance := s.intOr("range", 1)
	if distance < 0 {
		distance = 1
	}
	if err := s.beginLong(); err != nil {
		return err
	}
	keys, err := s.call.db.MatchSimilar(s.heed, &s.c.Owed, origin, distance, s.in.Has("utf"), s.matchMax(), s.room)
	return s.outKeys(keys, err)
}

// matchMax is how many keys the client wants; negative for all.
func (s *Session) matchMax() int64 { return s.intOr("max", -1) }

// room takes memory for the keys that a procedure finds.
func (s *Session) room(bytes int) error {
	s.lack = s.c.Hold(bytes)
	return s.lack
}

// outKeys adds a row per key with its place in the result, since the rows come in the order of the keys.
func (s *Session) outKeys(keys [][]byte, err error) error {
	if err != nil {
		return err
	}
	for i, key := range keys {
		s.out.Add(s.internBytes("_", key), s.internInt(int64(i)))
	}
	s.outInt("num", int64(len(keys)))
	return nil
}
