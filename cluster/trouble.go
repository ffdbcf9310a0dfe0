package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gotycoon/cluster/election"
)

// What a member says about its troubles has three sources: what it waits for itself (Node.trouble),
// which members it does not reach and why (the links know), and what the member says that leads the
// votes and is not the primary: only a leader asks the members for their data, so it alone knows
// what keeps a term from beginning.

// explain completes the trouble of a status. mu is not held.
func (n *Node) explain(s *Status, heard string) {
	says := []string{s.Trouble, n.elector.Trouble(), heard}
	all := false // whether it matters here who is not reached
	switch s.Role {
	case Waiting, Opening:
		all = true
	case Following:
		if why := n.mesh.unreached(s.Primary); why != "" {
			says, all = append(says, fmt.Sprintf("the primary %s does not answer: %s", s.Primary, why)), true
		}
	case Witness:
		_, _, known := n.elector.Leader()
		all = !known
	}
	if all {
		says = append(says, n.unreached(s.Members, strings.Join(says, " ")))
	}
	says = slices.DeleteFunc(says, func(text string) bool { return text == "" })
	s.Trouble = strings.Join(says, "; ")
}

// unreached lists the members that this member does not reach, with the reasons, except those that
// a text names already.
func (n *Node) unreached(members []election.Member, named string) string {
	var all []string
	for _, m := range members {
		if why := n.mesh.unreached(m.Name); why != "" && !strings.Contains(named, m.Name+" ") {
			all = append(all, fmt.Sprintf("%s (%s)", m.Name, why))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "not reached: " + strings.Join(all, ", ")
}

// Unreached says why a member does not hear from this one; empty: it does, as far as is known.
func (n *Node) Unreached(name string) string { return n.mesh.unreached(name) }

// doubtfulLooks is how many looks in a row find no primary before that is told: a change of the
// primary takes a moment, which nobody needs to hear of.
const doubtfulLooks = 2

// listen asks the member that leads the votes what keeps it from being the primary, and has links
// to those whose answers matter here.
func (n *Node) listen() {
	n.mu.Lock()
	role := n.role
	n.mu.Unlock()
	st := n.elector.State()
	leader, _, known := n.elector.Leader()
	for _, m := range st.Members {
		if m.Name != n.opts.Name && (role == Waiting || m.Name == st.Primary || !known) {
			n.mesh.link(m.Name)
		}
	}
	text, doubt := "", ""
	if known && leader != n.opts.Name {
		ctx, cancel := context.WithTimeout(n.ctx, learnEvery)
		defer cancel()
		var s Status
		err := n.mesh.call(ctx, leader, callStatus, nil, &s)
		doubt = s.doubt(leader, err)
		if (role == Waiting || role == Following && leader != st.Primary) && s.Trouble != "" && !strings.Contains(s.Trouble, " says: ") {
			text = fmt.Sprintf("%s says: %s", leader, s.Trouble)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if text != "" && shape(text) != shape(n.heard) {
		n.opts.Logger.Warn("cluster: " + text)
	}
	n.heard, n.doubt = text, doubt
	if n.doubtful++; doubt == "" {
		n.doubtful = 0
	}
}

// doubt says why a member that leads the votes is not the primary, from its status, or from the
// error of asking for it; empty: it is the primary.
func (s *Status) doubt(leader string, err error) string {
	switch {
	case err != nil:
		return leader + " leads the vote and does not answer this server"
	case s.Role == Leading || s.Role == Draining:
		return ""
	case s.Trouble == "":
		return fmt.Sprintf("%s leads the vote and is %s", leader, s.Role)
	}
	return fmt.Sprintf("%s leads the vote and is %s: %s", leader, s.Role, s.Trouble)
}

// Doubt says why the member that leads the votes is not the primary, if that has lasted: too few
// followers may be there for example. A member that follows it does not see that by itself. It is
// empty on the leader itself, and while nobody leads.
func (n *Node) Doubt() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.doubtful < doubtfulLooks {
		return ""
	}
	return n.doubt
}

// names lists the members of a State.
func names(st election.State) string {
	var all []string
	for _, m := range st.Members {
		all = append(all, m.Name)
	}
	return strings.Join(all, ", ")
}
