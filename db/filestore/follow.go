package filestore

import (
	"bytes"

	"gotycoon/ulog"
)

// followed is how far a master was followed, as a note in the log says it: the newest note that the file or the overlays have.
type followed struct {
	state []byte
	at    ulog.Stamp // of the note
}

// SetPosition gives the next checkpoint what to put into Meta.Follow: what a note in the log says that has the stamp at. Every update that the
// note speaks of has been applied. A note that is not newer than the one there is changes nothing, so whoever brings in what a
// log remembers need not ask which of the two knows better.
//
// The checkpoint syncs the log up to the note first. A file therefore never holds a note that a power cut has taken from its log, and whichever
// of file and log has the greater stamp is right.
func (s *Store) SetPosition(state []byte, at ulog.Stamp) {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	if at <= s.followed.at {
		return
	}
	s.followed = followed{bytes.Clone(state), at}
	s.view.Load().active.follow = s.followed
}

// Followed returns how far a master was followed, nil where nothing is known.
func (s *Store) Followed() []byte {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	return s.followed.state
}
