package server

import (
	"fmt"
	"strings"
	"time"

	"gotycoon/replication"
)

// Probes of the role, for load balancers and Kubernetes.

// primary answers the probe /primary: whether clients that update records belong here. Want of room
// does not matter, since no other server takes the updates then.
func (h *health) primary() (ok bool, text string) { return h.has(RolePrimary) }

// replica answers the probe /replica: whether clients that only read, and can do with what was here
// a moment ago, belong here. A copy that is not whole is refused. limited says that the lag counts.
func (h *health) replica(limit time.Duration, limited bool) (ok bool, text string) {
	if ok, text = h.has(RoleReplica); !ok {
		return false, text
	}
	var reasons []string
	for _, one := range h.following.incomplete() {
		reasons = append(reasons, one.text)
	}
	if limited {
		reasons = append(reasons, h.following.tooFar(time.Now(), limit)...)
	}
	return len(reasons) == 0, strings.Join(append([]string{text}, reasons...), "\n")
}

// has reports whether the server serves and has a role.
func (h *health) has(role Role) (ok bool, text string) {
	if phase := h.phase.get(); phase != "" {
		return false, phase
	}
	is, _ := h.standing.look()
	if err := h.catalog.Err(); err != nil {
		return false, is.text() + "\nfailed: no update is acknowledged any more: " + err.Error()
	}
	return is.Role == role, is.text()
}

// tooFar returns why this server is too far behind for a client that asks for a limit.
func (f *following) tooFar(now time.Time, limit time.Duration) (reasons []string) {
	if f.follower == nil { // a replica by election whose replication does not work
		return []string{"does not replicate: the log says why"}
	}
	if st := f.follower.Status(); st.State == replication.Stalled {
		reasons = append(reasons, "hears nothing of its master, or cannot store its updates: "+st.Trouble)
	}
	if lag, _ := f.lag(now); lag > limit {
		reasons = append(reasons, fmt.Sprintf("this server is behind its master: %.1f s, more than the %.1f s of max-lag", lag.Seconds(), limit.Seconds()))
	}
	return reasons
}
