package election

import (
	"fmt"
	"slices"
	"strings"
)

// Members that were given another list hear nothing of each other, see isForMeLocked. People are
// told.

// strangeLocked reports whether a member has begun with another list, as far as it was heard
// lately: it may have been mended, and have nothing to say to this member since.
func (r *Raft) strangeLocked(name string) bool {
	at, known := r.strange[name]
	return known && r.cfg.Clock.Now().Sub(at) < 10*r.timeout
}

// troubleLocked names the members that have begun with another list.
func (r *Raft) troubleLocked() string {
	var others, ours []string
	for name := range r.strange {
		if r.strangeLocked(name) {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return ""
	}
	slices.Sort(others)
	for _, m := range r.state.Members {
		ours = append(ours, m.Name)
	}
	return fmt.Sprintf("another list of members than here (%s) was given to %s: they do not hear each other."+
		" Start the one whose list is wrong again with the right -members; if its log then says that the"+
		" list is ignored, stop it and remove the file %s of its -cluster-dir first",
		strings.Join(ours, ", "), strings.Join(others, ", "), diskFile)
}
