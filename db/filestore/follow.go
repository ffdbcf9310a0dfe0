package filestore

import "bytes"

// SetFollow gives the next checkpoint what to put into Meta.Follow. Its caller holds the database's commit lock, or nothing is applied
// meanwhile: it comes right after the Apply of the updates that it speaks of.
func (s *Store) SetFollow(state []byte) {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	s.view.Load().active.follow = bytes.Clone(state)
}
