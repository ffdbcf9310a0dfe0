package exporter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func followerMetrics() []Definition {
	return []Definition{
		{"gotycoon_replication_following", Gauge, "1 when this server replicates from a master.", nil},
		{"gotycoon_replication_state", Gauge, "1 for the state that the replication from the master is in. Only where it is known.", labels("state")},
		{"gotycoon_replication_lag_seconds", Gauge, "How far this server is behind its master's clock: a second or two when it is not behind. Only while following.", nil},
		{"gotycoon_replication_position_timestamp_seconds", Gauge, "Time stamp of the master up to which everything is here.", nil},
		{"gotycoon_replication_last_contact_timestamp_seconds", Gauge, "When something last came from the master. Only where it is known.", nil},
	}
}

// Follower is the replication from a master at one moment.
type Follower struct {
	Following bool
	State     string        // empty: not known
	Lag       time.Duration // behind the clock
	Position  time.Time
	Contact   time.Time // when something last came from the master; zero: not known
}

// Replication returns the metrics of a server that can follow a master.
func Replication(now func() Follower) prometheus.Collector {
	return newCollector(followerMetrics(), func(s *sink) {
		f := now()
		s.put("gotycoon_replication_following", boolean(f.Following))
		s.put("gotycoon_replication_position_timestamp_seconds", seconds(f.Position))
		if f.State != "" {
			s.put("gotycoon_replication_state", 1, f.State)
		}
		if f.Following {
			s.put("gotycoon_replication_lag_seconds", f.Lag.Seconds())
		}
		if !f.Contact.IsZero() {
			s.put("gotycoon_replication_last_contact_timestamp_seconds", seconds(f.Contact))
		}
	})
}

func replicaMetrics() []Definition {
	of := labels("sid", "peer")
	return []Definition{
		{"gotycoon_replica_lag_seconds", Gauge, "How far a follower of this server is behind the update log.", of},
		{"gotycoon_replica_lag_records", Gauge, "How many records it is behind; only where it is known.", of},
		{"gotycoon_replica_last_contact_timestamp_seconds", Gauge, "When it last acknowledged something.", of},
		{"gotycoon_replicas", Gauge, "Followers connected to this server.", nil},
	}
}

// Replica is a follower of this server at one moment.
type Replica struct {
	SID     string // its server ID
	Peer    string // IP:PORT
	Lag     time.Duration
	Records int64 // below 0: not known
	Contact time.Time
}

// Replicas returns the metrics of the followers of a server with an update log.
func Replicas(now func() []Replica) prometheus.Collector {
	return newCollector(replicaMetrics(), func(s *sink) {
		all := now()
		s.count("gotycoon_replicas", int64(len(all)))
		for _, r := range all {
			s.put("gotycoon_replica_lag_seconds", r.Lag.Seconds(), r.SID, r.Peer)
			s.put("gotycoon_replica_last_contact_timestamp_seconds", seconds(r.Contact), r.SID, r.Peer)
			if r.Records >= 0 {
				s.count("gotycoon_replica_lag_records", r.Records, r.SID, r.Peer)
			}
		}
	})
}
