package rebuild

import "gotycoon/db/filestore"

// memory hands out the versions and removals that a damaged file remembers.
func (s *salvager) memory() error {
	if s.versions.page == 0 {
		return nil
	}
	was := s.reached
	s.reached = newBitmap(s.end) // or damage here could take pages from the runs, which come next
	defer func() { s.reached = was }()
	w := walker{pages: &s.pages, bad: func(d *Damage, _ span) error { s.lose(d, nil); return nil }, seen: s.mark}
	w.leaf = func(p page, _ span) error {
		bad := 0
		for i := range p.elements() {
			el, ok := p.at(i)
			e, entry := filestore.DecodeEntry(el.value)
			if !ok || !entry || len(el.key) == 0 || el.key[0] != filestore.VersionPrefix {
				bad++
				continue
			}
			if err := s.to.Remember(el.key[1:], e); err != nil {
				return err
			}
		}
		if bad > 0 {
			s.lose(s.damage(p.id, "%d versions of records cannot be read", bad), nil)
		}
		return nil
	}
	return w.bucket(s.versions)
}
