package server

import (
	"net"
	"strconv"

	"gotycoon/db"
	"gotycoon/replication"
)

// replicationStanding is the source of the role of a server without a cluster: it is what the
// operator has made it, with -mhost, tune_replication, -slave-read-only and -ord.
//
// A server that follows no master is the primary only if it takes updates: between the two commands
// of a takeover ('tunerepl' without a master, and 'tunerepl -rw') it is neither, and so is a master
// that is about to be replaced ('tunerepl -ro'). A load balancer must not send updates there.
//
// Two servers that follow each other are both replicas: there is no such thing as the primary.
type replicationStanding struct {
	catalog  *db.Catalog
	follower *replication.Follower // nil: this server cannot follow
	readOnly bool                  // -ord
	master   replication.Master    // of the start
}

// standing implements standingSource.
func (r *replicationStanding) standing() Standing {
	m := r.master
	if r.follower != nil {
		m = r.follower.Master()
	}
	switch {
	case m.Host != "" && r.follower == nil:
		// It was to follow a master and cannot, as its log says. What it has may be old, and what
		// clients stored here would be nowhere else.
		return Standing{Role: RoleNone, Primary: masterAddress(m)}
	case m.Host != "":
		return Standing{Role: RoleReplica, Primary: masterAddress(m)}
	case r.readOnly || r.catalog.Guarded():
		return Standing{Role: RoleNone}
	}
	return Standing{Role: RolePrimary}
}

// watch implements standingSource.
func (r *replicationStanding) watch(changed func()) {
	if r.follower != nil {
		r.follower.OnTune(changed)
	}
	r.catalog.OnGuard(changed)
}

func masterAddress(m replication.Master) string {
	return net.JoinHostPort(m.Host, strconv.Itoa(m.Port))
}
