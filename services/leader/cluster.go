package leader

import (
	"errors"

	"gotycoon/services"
)

// In a cluster (package cluster) the members elect the primary for data, and the same server is the
// primary of the services. Claims are still written: the claim is the first update of a term, and
// tells servers outside of the cluster that follow a member whose records count.
//
// A disk can hang, and then a server must still be able to say at once that it is the primary no
// more. So what may wait for the disk is apart from what changes the role:
//
//	Stake    writes the claim          waits
//	Ready    the services take over    waits
//	Grant    calls are served          does not wait
//	Revoke   calls are refused         does not wait
//	Settle   the services have ended   waits for the calls under way

var errCluster = errors.New("the cluster decides which server is the primary; 'ktremotemgr cluster switchover' makes another one the primary")

// Outvoted returns a *services.Standby while the cluster has another primary than this server, or
// none. Outside of a cluster it returns nil: there, some calls are for standbys too.
func (r *Role) Outvoted() error {
	if r == nil || !r.opts.Cluster {
		return nil
	}
	_, err := r.Term()
	return err
}

// Stake writes the claim with which a term begins.
func (r *Role) Stake() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writeClaim()
}

// Ready has the services take over what they need before they can serve. Stake has been called in
// this term.
func (r *Role) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partial = false
	if r.ready.Load() != 0 {
		return nil
	}
	if reason := r.why(); reason != "" {
		return errors.New(reason)
	}
	if err := r.lead(); err != nil {
		return err
	}
	r.current = true
	r.ready.Store(r.claims[r.opts.SID])
	return nil
}

// Grant makes this server the primary, if Ready has succeeded. The caller sees to it that neither
// Revoke nor Settle runs meanwhile.
func (r *Role) Grant() {
	if term := r.ready.Load(); term != 0 {
		r.term.Store(term)
		r.tellPrimary(term)
	}
}

// Revoke has the calls that come from now on refused.
func (r *Role) Revoke(reason string) {
	if old := r.standby.Swap(&services.Standby{Reason: reason}); old == nil || old.Reason != reason {
		r.opts.Logger.Info("quotas and fencing tokens: " + reason)
	}
	r.term.Store(0)
}

// Settle returns when no call changes anything any more. Revoke has been called.
func (r *Role) Settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ready.Swap(0) != 0 {
		r.end()
	}
}

// Deny is Revoke and Settle.
func (r *Role) Deny(reason string) {
	r.Revoke(reason)
	r.Settle()
}
