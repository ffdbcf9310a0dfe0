package leader

import "errors"

// In a cluster (package cluster) the members elect the primary for data, and the same server is the
// primary of the services. Claims are still written: the claim is the first update of a term, and
// tells servers outside of the cluster that follow a member whose records count.

var errCluster = errors.New("the cluster decides which server is the primary; 'ktremotemgr cluster switchover' makes another one the primary")

// Stake writes the claim with which a term begins. The services begin with Grant.
func (r *Role) Stake() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writeClaim()
}

// Grant makes this server the primary. Stake has been called in this term.
func (r *Role) Grant() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied = ""
	r.partial = false
	return r.decide()
}

// Deny ends the services of this server, if it was the primary.
func (r *Role) Deny(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied = reason
	r.yield(reason)
}
