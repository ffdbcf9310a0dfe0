package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gotycoon/cluster/election"
)

// counts returns why what a member has does not count; nil: it counts.
func (s *sealed) counts() error {
	if s.err == nil && s.has.Incomplete != "" {
		return errors.New(s.has.Incomplete)
	}
	return s.err
}

// plenty reports whether enough members are sealed, also if the former primary has lost its newest
// updates, in a power cut without -oas: for that case, all others are given the time to answer.
func plenty(st election.State, all []sealed) bool {
	without := slices.DeleteFunc(slices.Clone(all), func(s sealed) bool { return s.member.Name == st.Primary })
	return enough(st, without) == nil
}

// enough returns nil when every update that was ever acknowledged is on one of the members that are
// sealed.
func enough(st election.State, all []sealed) error {
	data, have, here := 0, 0, 0
	for _, m := range st.Members {
		if !m.Witness && !m.Joining {
			data++
		}
	}
	var missing []string
	for i := range all {
		s := &all[i]
		if err := s.counts(); err != nil {
			missing = append(missing, fmt.Sprintf("%s (%v)", s.member.Name, err))
			continue
		}
		// Where all are here, everything that exists is here. Before the first update of the first
		// term, nobody has any.
		if here++; here == data {
			return nil
		}
		// A member whose disk was replaced has nothing, and may have acknowledged something before.
		if st.Term > 0 && s.at.Term == 0 {
			missing = append(missing, s.member.Name+" (it has no data of the cluster)")
			continue
		}
		have++
		if s.member.Name == st.Primary && s.at.Term == st.Term && s.has.Log == st.Log {
			return nil // it has whatever it acknowledged
		}
	}
	need := data - st.Required
	if st.Term == 0 {
		need = data
	}
	if have >= need {
		return nil
	}
	return fmt.Errorf("%d of %d members with data are here, and %d must be, to be sure that nothing acknowledged is lost; missing: %s",
		have, data, need, strings.Join(missing, ", "))
}

// choose returns the member that has most, among equals the one with the given name.
func choose(st election.State, all []sealed, name string) (*sealed, error) {
	if err := enough(st, all); err != nil {
		return nil, err
	}
	if err := distinct(st, all); err != nil {
		return nil, err
	}
	if st.Term == 0 {
		return first(all, name)
	}
	var best, most *sealed
	for i := range all {
		s := &all[i]
		if s.counts() != nil {
			continue
		}
		if most == nil || most.at.Before(s.at) {
			most = s
		}
		if s.has.Leaving {
			continue
		}
		if best == nil || best.at.Before(s.at) || best.at == s.at && s.member.Name == name {
			best = s
		}
	}
	switch {
	case most.at.Term == 0: // nobody who was appointed has begun a term
		return first(all, name)
	case best == nil || best.at.Before(most.at):
		return nil, fmt.Errorf("%s is about to stop and has updates that no other member has", most.member.Name)
	}
	return best, nil
}

// distinct finds members that have the same server ID: each would drop the updates of the other.
// The one whose ID the State knows counts, the other does not. At the beginning of a cluster that
// is an error, because the State knows no IDs yet.
func distinct(st election.State, all []sealed) error {
	for i := range all {
		s := &all[i]
		for j := range all {
			o := &all[j]
			if i == j || s.err != nil || o.err != nil || s.has.SID != o.has.SID {
				continue
			}
			same := fmt.Errorf("the members %s and %s have the same server ID, %d: give each its own (-sid) and start it again", s.member.Name, o.member.Name, s.has.SID)
			switch s.has.SID {
			case s.member.SID:
				o.err = same
			case o.member.SID:
				s.err = same
			default:
				return same
			}
		}
	}
	return enough(st, all)
}

// first returns the first primary of a new cluster: the member with data that all others have
// followed, or else are empty. If all are empty, it is the one with the given name.
func first(all []sealed, name string) (*sealed, error) {
	var best *sealed
	for i := range all {
		s := &all[i]
		fits := true
		for j := range all {
			other := &all[j]
			fits = fits && (i == j || other.has.Empty || other.has.Follows == s.has.Log)
		}
		if fits && (best == nil || best.has.Empty && !s.has.Empty || best.has.Empty == s.has.Empty && s.member.Name == name) {
			best = s
		}
	}
	if best == nil {
		return nil, errors.New("the members have different data, and none has followed another: start the cluster with one member that has data, " +
			"while the directories of the others are empty, or with a master and its slaves")
	}
	return best, nil
}
