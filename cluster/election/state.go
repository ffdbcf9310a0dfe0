package election

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// keptAppointments is the number of appointments in State.History. A member that was away for
// longer than so many failovers must copy the data anew.
const keptAppointments = 64

// A Member is a server of the cluster.
type Member struct {
	Name    string `json:"name"` // unique in the cluster
	Addr    string `json:"addr"` // host:port
	SID     uint16 `json:"sid"`  // server ID in the update log
	Witness bool   `json:"witness,omitempty"`

	// Joining: the member has no vote yet. The elector sets and clears it.
	Joining bool `json:"joining,omitempty"`
	// ID is the member's number in the consensus protocol. The elector sets it. A name that is
	// removed and added again has another ID.
	ID uint64 `json:"id,omitempty"`
}

// An Appointment says that a member was made the primary, and from where its update log counts.
type Appointment struct {
	Term    uint64 `json:"term"`    // the elector's term of the leader that committed it
	Primary string `json:"primary"` // name of the member
	Log     uint64 `json:"log"`     // identity of the primary's update log (ulog.LogKey)

	// FromLog and From are the position, log key and stamp, from which the term begins: what is
	// later in the former primary's log was never part of the cluster's data.
	FromLog uint64 `json:"from_log"`
	From    uint64 `json:"from"`

	Start uint64 `json:"start"` // first stamp of the term in the primary's own log

	// The primary may have got its data by a copy. Its log then has single updates only behind the
	// stamp BaseOwn: those that follow the position BaseFrom in the log Base. Base is 0 without a
	// copy.
	Base     uint64 `json:"base,omitempty"`
	BaseFrom uint64 `json:"base_from,omitempty"`
	BaseOwn  uint64 `json:"base_own,omitempty"`
}

// State is what the members agree on. A majority commits every change of it.
type State struct {
	// The current appointment; Term is 0 before the first one.
	Appointment

	// Required is the number of followers that must have an update before it is acknowledged in
	// this term.
	Required int `json:"required"`

	// Members are sorted by name.
	Members []Member `json:"members"`

	// History are the last 64 appointments, the current one included, so that a member that was
	// away for long learns every branch point. Whoever proposes an appointment appends it.
	History []Appointment `json:"history"`

	// Version grows with every change. The elector sets it.
	Version uint64 `json:"version"`
}

// Appoint returns the State with another primary: a becomes the current appointment and the last
// one of the history.
func (s State) Appoint(a Appointment, required int) State {
	s = s.clone()
	s.Appointment, s.Required = a, required
	s.History = append(s.History, a)
	return s
}

// Member returns the member with a name.
func (s State) Member(name string) (Member, bool) {
	i := slices.IndexFunc(s.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		return Member{}, false
	}
	return s.Members[i], true
}

// clone returns a copy that shares no memory with s.
func (s State) clone() State {
	s.Members = slices.Clone(s.Members)
	s.History = slices.Clone(s.History)
	return s
}

// next returns what is committed when a caller wants s after before.
func (s State) next(before State) State {
	s = s.clone()
	slices.SortFunc(s.Members, byName)
	if n := len(s.History); n > keptAppointments {
		s.History = slices.Clone(s.History[n-keptAppointments:])
	}
	s.Version = before.Version + 1
	return s
}

func byName(a, b Member) int { return strings.Compare(a.Name, b.Name) }

// with returns the State with another member.
func (s State) with(m Member) (State, error) {
	if _, known := s.Member(m.Name); known || m.Name == "" {
		return s, fmt.Errorf("election: %q is a member already, or no name", m.Name)
	}
	s = s.clone()
	s.Members = append(s.Members, m)
	return s, nil
}

// without returns the State without a member.
func (s State) without(name string) (State, error) {
	if _, known := s.Member(name); !known {
		return s, fmt.Errorf("election: %q is no member", name)
	}
	s = s.clone()
	s.Members = slices.DeleteFunc(s.Members, func(m Member) bool { return m.Name == name })
	return s, nil
}

var errRemoveSelf = errors.New("election: the leader cannot remove itself; transfer the leadership first")

// successor returns the member that is to lead after the member self.
func (s State) successor(name, self string) (Member, error) {
	m, known := s.Member(name)
	if !known || m.Witness || m.Joining || name == self {
		return m, fmt.Errorf("%w: %q is no member that can take over; nothing was changed", ErrRefused, name)
	}
	return m, nil
}

// keepMembers makes a change that must leave the membership alone.
func keepMembers(before State, change func(State) (State, error)) (State, error) {
	after, err := change(before.clone())
	if err == nil && !sameMembers(before.Members, after.Members) {
		err = errors.New("election: members are changed with AddMember and RemoveMember")
	}
	return after, err
}

// sameMembers reports whether a change leaves of the members what it must not change.
func sameMembers(before, after []Member) bool {
	return slices.EqualFunc(before, after, func(a, b Member) bool {
		return a.Name == b.Name && a.ID == b.ID && a.Witness == b.Witness && a.Joining == b.Joining
	})
}
