package cluster

import (
	"context"
	"time"

	"gotycoon/cluster/election"
)

// learnEvery is the pause between two looks of the primary at who the others are.
const learnEvery = time.Second

// learn puts the server IDs of the members into the State: the primary counts the acknowledgements
// of followers by their IDs, and a member may have been away when the primary was appointed.
func (n *Node) learn() {
	n.mu.Lock()
	term, leads := n.term, n.role == Leading
	n.mu.Unlock()
	if !leads {
		return
	}
	ctx, cancel := context.WithTimeout(n.ctx, learnEvery)
	defer cancel()
	st, all := n.elector.State(), n.Survey(ctx)
	n.tally.asked(term, st.Members, all)
	if !changes(&st, all) {
		return
	}
	err := n.elector.Propose(n.ctx, term, func(now election.State) (election.State, error) {
		changes(&now, all)
		return now, nil
	})
	if err != nil {
		n.opts.Logger.Info("cluster: noting the server IDs of the members: " + err.Error())
	}
}

// changes puts into a State what the members say of themselves, and reports whether it differs. It
// leaves out an ID that two members claim.
func changes(st *election.State, all map[string]Status) (changed bool) {
	owners := map[uint16]int{}
	for _, s := range all {
		owners[s.Has.SID]++
	}
	members := make([]election.Member, len(st.Members))
	copy(members, st.Members)
	for i := range members {
		m := &members[i]
		s, ok := all[m.Name]
		if ok && !m.Witness && owners[s.Has.SID] == 1 && m.SID != s.Has.SID {
			m.SID, changed = s.Has.SID, true
		}
	}
	st.Members = members
	return changed
}
