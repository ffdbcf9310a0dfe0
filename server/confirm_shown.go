package server

import (
	"strconv"
	"time"

	"gotycoon/admin/status"
	"gotycoon/replication"
	"gotycoon/ulog"
)

// confirmation returns how updates are confirmed. uses is false where no follower is required.
func (r *replicas) confirmation() (s replication.QuorumState, uses bool) {
	if r.quorum == nil {
		return s, false
	}
	s = r.quorum.State()
	s.Refusing = s.Refusing && !r.guarded() // a copy that is to take over one day lacks nothing
	return s, s.Word() != "off"
}

// Required implements httpapi.Replicas.
func (r *replicas) Required() int { return r.quorum.Required() }

// Await implements httpapi.Replicas.
func (r *replicas) Await(at ulog.Stamp, n int, limit time.Duration) (have int, err error) {
	return r.quorum.Has(at, n, limit)
}

// endWaits ends all waits for followers, at a stop.
func (r *replicas) endWaits() {
	if r.quorum != nil {
		r.quorum.EndWaits()
	}
}

// alarms returns what is wrong with the followers that must confirm updates.
func (r *replicas) alarms(time.Time) []alarm {
	switch s, _ := r.confirmation(); {
	case s.Degraded:
		return []alarm{{name: alarmDegraded, text: "updates are answered without waiting for followers, a failover may lose them: " + s.Trouble}}
	case s.Refusing:
		return []alarm{{name: alarmFollowers, text: "updates are refused: " + s.Trouble}}
	}
	return nil
}

// reportConfirmation adds our own rows about confirmation, where followers are required.
func (r *replicas) reportConfirmation(rows map[string]string) {
	s, uses := r.confirmation()
	if !uses {
		return
	}
	rows["repl_sync_replicas"] = strconv.Itoa(s.Required)
	rows["repl_sync_present"] = strconv.Itoa(s.Present)
	rows["repl_sync_state"] = s.Word()
	if s.Trouble != "" {
		rows["repl_sync_trouble"] = s.Trouble
	}
}

// confirmationFigures are the metrics of confirmation.
func (r *replicas) confirmationFigures() status.Confirmation {
	s, _ := r.confirmation()
	return status.Confirmation{
		Required: s.Required, Present: s.Present, Refusing: s.Refusing, Degraded: s.Degraded, Waiting: s.Waiting,
		Refused: s.Refused, Unconfirmed: s.Unconfirmed, Unwaited: s.Unwaited,
	}
}
