package cluster

import (
	"sync"
	"time"

	"gotycoon/cluster/election"
)

// Figures are what a member knows of its cluster without asking another one.
type Figures struct {
	Role     Role
	Serving  bool   // this member answers clients as the primary
	Term     uint64 // of the newest appointment that is known here
	Required int    // followers that must have an update
	Members  []election.Member
	Leader   string // who leads the vote as far as this member knows; empty: nobody

	// Changes is how often a primary was appointed since the start of this member, also the same
	// one again. Changed is when this member noticed the latest appointment, or its start.
	Changes uint64
	Changed time.Time

	// Answering says of each member, on the primary, whether it answers; nil: not known here.
	Answering map[string]bool
}

// Figures returns the present figures. It waits for nothing.
func (n *Node) Figures() Figures {
	st, view := n.elector.State(), n.View()
	f := Figures{Role: view.Role, Serving: n.Serving() == nil, Term: st.Term, Required: st.Required, Members: st.Members}
	if leader, _, known := n.elector.Leader(); known {
		f.Leader = leader
	}
	n.tally.fill(&f, n.acts.Load())
	return f
}

// Trouble says why this member is neither the primary nor follows one; empty: it is, or does.
func (n *Node) Trouble() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trouble
}

// tally keeps what is known only from one look to the next.
type tally struct {
	mu      sync.Mutex // alone
	term    uint64     // of the newest appointment
	changes uint64
	changed time.Time

	led    uint64         // term in which the primary has asked the members
	silent map[string]int // looks in a row that a member has not answered
}

// silentLooks is how many looks in a row a member does not answer before it counts as missing: one
// can be late when its disk is busy.
const silentLooks = 2

// appointed notes the term of the newest appointment. The first one that is known is where the
// counting begins.
func (t *tally) appointed(term uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if term == t.term {
		return
	}
	if t.term != 0 {
		t.changes++
	}
	t.term, t.changed = term, time.Now()
}

// asked notes which members have answered the primary of a term.
func (t *tally) asked(term uint64, members []election.Member, answers map[string]Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.silent
	if t.led != term {
		before = nil
	}
	t.led, t.silent = term, map[string]int{}
	for _, m := range members {
		t.silent[m.Name] = 0
		if _, answered := answers[m.Name]; !answered {
			t.silent[m.Name] = before[m.Name] + 1
		}
	}
}

// fill adds what is known to figures of the term that this member leads, 0 if it leads none.
func (t *tally) fill(f *Figures, led uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.Changes, f.Changed = t.changes, t.changed
	if led == 0 || led != t.led {
		return
	}
	f.Answering = map[string]bool{}
	for name, looks := range t.silent {
		f.Answering[name] = looks < silentLooks
	}
}
