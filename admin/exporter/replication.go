package exporter

import (
	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/admin/status"
)

func followerMetrics() []Definition {
	return []Definition{
		{"gotycoon_replication_following", Gauge, "1 when this server replicates from a master.", nil},
		{"gotycoon_replication_state", Gauge, "1 for the state that the replication from the master is in. Only where it is known.", labels("state")},
		{"gotycoon_replication_lag_seconds", Gauge, "How far this server is behind its master: 0 while it has everything. When the master is silent for two seconds, it grows from the last sign of life. Only while following.", nil},
		{"gotycoon_replication_lag_records", Gauge, "How many updates of the master are not here yet. Only where it is known.", nil},
		{"gotycoon_replication_position_timestamp_seconds", Gauge, "Time stamp of the master up to which everything is here.", nil},
		{"gotycoon_replication_last_contact_timestamp_seconds", Gauge, "When something last came from the master. Only where it is known.", nil},
		{"gotycoon_replication_applied_total", Counter, "Updates of the master that were applied. Only where it is known.", nil},
		{"gotycoon_replication_applied_bytes_total", Counter, "Their size on the network. Only where it is known.", nil},
		{"gotycoon_replication_dropped_total", Counter, "Updates of the master that had come on another way before. Only where it is known.", nil},
	}
}

// Replication returns the metrics of a server that can follow a master.
func Replication(now func() status.Follower) prometheus.Collector {
	return newCollector(followerMetrics(), func(s *sink) { readFollower(s, now()) })
}

func readFollower(s *sink, f status.Follower) {
	s.put("gotycoon_replication_following", boolean(f.Following))
	s.put("gotycoon_replication_position_timestamp_seconds", seconds(f.Position))
	if f.State != "" {
		s.put("gotycoon_replication_state", 1, f.State)
	}
	if f.Following && f.Seconds >= 0 {
		s.put("gotycoon_replication_lag_seconds", f.Seconds)
	}
	if f.Following && f.Records >= 0 {
		s.count("gotycoon_replication_lag_records", f.Records)
	}
	if !f.Contact.IsZero() {
		s.put("gotycoon_replication_last_contact_timestamp_seconds", seconds(f.Contact))
	}
	if a := f.Applied; a != nil {
		s.count("gotycoon_replication_applied_total", a.Updates)
		s.count("gotycoon_replication_applied_bytes_total", a.Bytes)
		s.count("gotycoon_replication_dropped_total", a.Dropped)
	}
}

func replicaMetrics() []Definition {
	of := labels("sid", "peer")
	return []Definition{
		{"gotycoon_replicas", Gauge, "Followers connected to this server.", nil},
		{"gotycoon_replica_state", Gauge, "1 for the state that a follower is in; peer is its address without the port. Several followers with the same " +
			"server ID and address are one here and below: the slowest counts.", labels("sid", "peer", "state")},
		{"gotycoon_replica_lag_seconds", Gauge, "How long a follower has lacked something. Only where it is known.", of},
		{"gotycoon_replica_lag_records", Gauge, "How many updates it lacks. Only where it is known.", of},
		{"gotycoon_replica_last_contact_timestamp_seconds", Gauge, "When it last acknowledged something.", of},
	}
}

// Replicas returns the metrics of the followers of a server with an update log.
func Replicas(now func() []status.Replica) prometheus.Collector {
	return newCollector(replicaMetrics(), func(s *sink) {
		all := now()
		s.count("gotycoon_replicas", int64(len(all)))
		for _, group := range grouped(all) {
			readReplicas(s, group)
		}
	})
}

// grouped puts followers with the same labels together: two on one machine with the same server ID,
// or a follower whose former connection still exists.
func grouped(all []status.Replica) [][]status.Replica {
	type name struct{ sid, peer string }
	at, groups := map[name]int{}, [][]status.Replica(nil)
	for _, r := range all {
		n := name{r.SID, r.Peer}
		i, known := at[n]
		if !known {
			i = len(groups)
			at[n] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// readReplicas sends, for followers with the same labels, the figures of the slowest, and each
// state that one of them is in.
func readReplicas(s *sink, group []status.Replica) {
	worst, states := group[0], map[string]bool{}
	for _, r := range group {
		worst.Seconds, worst.Records = max(worst.Seconds, r.Seconds), max(worst.Records, r.Records)
		if r.Contact.Before(worst.Contact) {
			worst.Contact = r.Contact
		}
		states[r.State] = true
	}
	delete(states, "")
	for state := range states {
		s.put("gotycoon_replica_state", 1, worst.SID, worst.Peer, state)
	}
	readReplica(s, &worst)
}

func readReplica(s *sink, r *status.Replica) {
	s.put("gotycoon_replica_last_contact_timestamp_seconds", seconds(r.Contact), r.SID, r.Peer)
	if r.Seconds >= 0 {
		s.put("gotycoon_replica_lag_seconds", r.Seconds, r.SID, r.Peer)
	}
	if r.Records >= 0 {
		s.count("gotycoon_replica_lag_records", r.Records, r.SID, r.Peer)
	}
}

func confirmationMetrics() []Definition {
	return []Definition{
		{"gotycoon_sync_replicas_required", Gauge, "Followers that must have an update before it is answered (-sync-replicas).", nil},
		{"gotycoon_sync_replicas_present", Gauge, "Followers that can confirm updates now.", nil},
		{"gotycoon_sync_refusing", Gauge, "1 while updates are refused because too few followers are there.", nil},
		{"gotycoon_sync_degraded", Gauge, "1 while updates are answered without waiting for followers (-sync-degrade).", nil},
		{"gotycoon_sync_waiting", Gauge, "Answers that wait for followers.", nil},
		{"gotycoon_sync_refused_total", Counter, "Updates refused because too few followers were there.", nil},
		{"gotycoon_sync_unconfirmed_total", Counter, "Answers that became errors because followers did not confirm them in time.", nil},
		{"gotycoon_sync_unwaited_total", Counter, "Answers that did not wait for followers, with -sync-degrade.", nil},
	}
}

// Confirmations returns the metrics of a server whose updates followers may have to confirm.
func Confirmations(now func() status.Confirmation) prometheus.Collector {
	return newCollector(confirmationMetrics(), func(s *sink) {
		c := now()
		s.count("gotycoon_sync_replicas_required", int64(c.Required))
		s.count("gotycoon_sync_replicas_present", int64(c.Present))
		s.put("gotycoon_sync_refusing", boolean(c.Refusing))
		s.put("gotycoon_sync_degraded", boolean(c.Degraded))
		s.count("gotycoon_sync_waiting", c.Waiting)
		s.count("gotycoon_sync_refused_total", c.Refused)
		s.count("gotycoon_sync_unconfirmed_total", c.Unconfirmed)
		s.count("gotycoon_sync_unwaited_total", c.Unwaited)
	})
}
