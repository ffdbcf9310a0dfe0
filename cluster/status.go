package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gotycoon/cluster/election"
)

// Status describes a member, or what this member knows of the cluster.
type Status struct {
	Name     string            `json:"name"`
	Role     Role              `json:"role"`
	Term     uint64            `json:"term"`
	Since    time.Time         `json:"since"`
	Primary  string            `json:"primary,omitempty"` // as far as this member knows
	Required int               `json:"required"`
	Members  []election.Member `json:"members"`
	Trouble  string            `json:"trouble,omitempty"` // why there is no other role
	Stalled  float64           `json:"stalled,omitempty"` // seconds for which the disk has done nothing
	Unready  bool              `json:"unready,omitempty"` // its services could not take over when that was tried last
	Aside    Aside             `json:"aside,omitzero"`
	Asides   []string          `json:"asides,omitempty"` // directories, also of former processes
	Has      Inventory         `json:"has,omitzero"`
}

// Status returns the present description of this member. It waits for nothing.
func (n *Node) Status() Status {
	n.mu.Lock()
	s, heard := n.statusLocked(), n.heard
	n.mu.Unlock()
	n.explain(&s, heard)
	if !n.opts.Witness {
		s.Has = n.opts.Data.Glance()
	}
	if stalled := n.Stalled(); stalled >= shownStall {
		s.Stalled = stalled.Seconds()
		if s.Trouble != "" {
			s.Trouble = "; " + s.Trouble
		}
		s.Trouble = fmt.Sprintf("the disk of %s has done nothing for %.1f s although updates wait for it%s", n.opts.Name, s.Stalled, s.Trouble)
	}
	if n.opts.Asides != nil && s.Stalled == 0 { // it reads a directory
		s.Asides = n.opts.Asides()
	}
	return s
}

func (n *Node) statusLocked() Status {
	st := n.elector.State()
	return Status{
		Name: n.opts.Name, Role: n.role, Term: n.term, Since: n.since, Primary: st.Primary, Required: st.Required, Members: st.Members,
		Trouble: n.trouble, Aside: n.aside, Unready: n.unready,
	}
}

// View is what this member is.
type View struct {
	Role    Role
	Term    uint64          // led or followed
	Primary election.Member // itself, or the one that is followed; zero while there is none
}

// View returns what this member is at this moment. It waits for nothing.
func (n *Node) View() View { return *n.view.Load() }

func (n *Node) viewLocked() *View {
	v := View{Role: n.role, Term: n.term}
	if n.role == Leading || n.role == Draining || n.role == Following {
		st := n.elector.State()
		v.Primary, _ = st.Member(st.Primary)
	}
	return &v
}

// Survey asks all members for their descriptions. Those that do not answer in time are missing from
// the result.
func (n *Node) Survey(ctx context.Context) map[string]Status {
	all := n.surveyOthers(ctx)
	if _, member := n.elector.State().Member(n.opts.Name); member {
		all[n.opts.Name] = n.Status()
	}
	return all
}

// surveyOthers is Survey without this member. It waits for no disk.
func (n *Node) surveyOthers(ctx context.Context) map[string]Status {
	var mu sync.Mutex
	var asking sync.WaitGroup
	all := map[string]Status{}
	for _, m := range n.elector.State().Members {
		if m.Name == n.opts.Name {
			continue
		}
		asking.Go(func() {
			var s Status
			if n.mesh.call(ctx, m.Name, callStatus, nil, &s) != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all[m.Name] = s
		})
	}
	asking.Wait()
	return all
}
