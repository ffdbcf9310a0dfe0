package exporter

import (
	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/admin/status"
)

func engineMetrics() []Definition {
	return []Definition{
		{"gotycoon_engine_up", Gauge, "1 while the engine of -pldb postgres://… answers this server; 0: requests are refused.", nil},
		{"gotycoon_engine_group_operations", Histogram, "Operations that were written together.", nil},
		{"gotycoon_engine_group_bytes", Histogram, "Keys and values of the records that were written together.", nil},
		{"gotycoon_engine_read_keys", Histogram, "Keys that were read together.", nil},
		{"gotycoon_engine_wait_seconds", Histogram, "Time from the arrival of an operation until its group is under way.", nil},
		{"gotycoon_engine_read_seconds", Histogram, "Time in which the engine has read the keys of a group.", nil},
		{"gotycoon_engine_write_seconds", Histogram, "Time in which the engine has written a group.", nil},
		{"gotycoon_engine_lost_total", Counter, "Operations that had to run again because another server was faster.", nil},
		{"gotycoon_engine_undone_total", Counter, "Groups that were tried again because a call had failed.", nil},
		{"gotycoon_engine_unknown_total", Counter, "Groups that the engine has not answered: they may have been made, and the engine is asked until it says so.", nil},
		{"gotycoon_engine_settled_total", Counter, "Of them: those that the engine has told about later, by outcome: made or undone.", labels("outcome")},
		{"gotycoon_engine_held_total", Counter, "Groups whose keys were locked in the engine, because their operations had lost too often.", nil},
		{"gotycoon_engine_refused_total", Counter, "Operations and reads refused as busy, or while the engine was away.", nil},
		{"gotycoon_engine_swept_total", Counter, "Expired records that the engine has removed for this server.", nil},
		{"gotycoon_engine_queue", Gauge, "Operations and reads that wait for the engine or are under way.", nil},
		{"gotycoon_engine_queue_bytes", Gauge, "What they bring.", nil},
		{"gotycoon_engine_queue_limit", Gauge, "From how many on operations are refused as busy (-engine-queue).", nil},
		{"gotycoon_engine_connections", Gauge, "Connections of this server to the engine.", nil},
		{"gotycoon_engine_lease_held", Gauge, "1 while this server holds the lease of the engine in which it has messages of queues. Only once a client has taken one.", labels("name")},
		{"gotycoon_engine_lease_term", Gauge, "The latest term of this lease. It grows with each holder, also when a server had to take its lease anew.", labels("name")},
		{"gotycoon_engine_signals_listening", Gauge, "1 while signals (SIGNAL) of other servers are heard. 0 is right where nobody has waited (WAIT) for a minute. Not with -ord.", nil},
		{"gotycoon_engine_signals_sent_total", Counter, "Signals of clients of this server that were sent to the others.", nil},
		{"gotycoon_engine_signals_woken_total", Counter, "Clients of this server that signals of others have woken.", nil},
		{"gotycoon_engine_signals_dropped_total", Counter, "Signals that did not reach the others, because the engine did not take them, or not soon enough.", nil},
		{"gotycoon_engine_log_bytes", Gauge, "Size of the engine's log of updates. This and the following only while the engine answers.", nil},
		{"gotycoon_engine_log_keep_seconds", Gauge, "For how long the engine is to keep its log (-engine-log-age). It goes in thirds, so the oldest update is up to half as old again.", nil},
		{"gotycoon_engine_log_oldest_seconds", Gauge, "Age of the oldest update in it. Only where it has one.", nil},
		{"gotycoon_engine_horizon_age_seconds", Gauge, "For how long the first group has been under way that readers of the engine's log must wait for; 0: none is. Of all servers.", nil},
		{"gotycoon_engine_dead_tuples", Gauge, "Versions of records that nobody can see any more, and that still take room in the engine.", nil},
		{"gotycoon_engine_oldest_transaction_seconds", Gauge, "Age of the oldest transaction of anybody in the PostgreSQL database: nothing that it might see can be cleaned up.", nil},
		{"gotycoon_engine_replica_lag_seconds", Gauge, "How far the engine's slowest standby is behind; at a standby, how old its state is. Only where the role of -pldb may see it.", nil},
	}
}

// Engine returns the metrics of an engine that several servers share.
func Engine(now func() status.Engine) prometheus.Collector {
	return newCollector(engineMetrics(), func(s *sink) {
		e := now()
		s.put("gotycoon_engine_up", boolean(e.Up))
		s.histogram("gotycoon_engine_group_operations", e.GroupOperations, asItIs)
		s.histogram("gotycoon_engine_group_bytes", e.GroupBytes, asItIs)
		s.histogram("gotycoon_engine_read_keys", e.ReadKeys, asItIs)
		s.histogram("gotycoon_engine_wait_seconds", e.Wait, perNano)
		s.histogram("gotycoon_engine_read_seconds", e.Read, perNano)
		s.histogram("gotycoon_engine_write_seconds", e.Write, perNano)
		s.count("gotycoon_engine_lost_total", int64(e.Lost))
		s.count("gotycoon_engine_undone_total", int64(e.Undone))
		s.count("gotycoon_engine_unknown_total", int64(e.Unknown))
		s.count("gotycoon_engine_settled_total", int64(e.SettledMade), "made")
		s.count("gotycoon_engine_settled_total", int64(e.SettledUndone), "undone")
		s.count("gotycoon_engine_held_total", int64(e.Held))
		s.count("gotycoon_engine_refused_total", int64(e.Refused))
		s.count("gotycoon_engine_swept_total", e.Swept)
		s.count("gotycoon_engine_queue", e.Queue)
		s.count("gotycoon_engine_queue_bytes", e.QueueBytes)
		s.count("gotycoon_engine_queue_limit", e.QueueLimit)
		s.count("gotycoon_engine_connections", int64(e.Connections))
		if l := e.Lease; l.Name != "" {
			s.put("gotycoon_engine_lease_held", boolean(l.Held), l.Name)
			s.count("gotycoon_engine_lease_term", int64(l.Term), l.Name)
		}
		if g := e.Signals; g != nil {
			s.put("gotycoon_engine_signals_listening", boolean(g.Listening))
			s.count("gotycoon_engine_signals_sent_total", int64(g.Sent))
			s.count("gotycoon_engine_signals_woken_total", int64(g.Woken))
			s.count("gotycoon_engine_signals_dropped_total", int64(g.Dropped))
		}
		in := e.Inside
		if in == nil {
			return
		}
		s.count("gotycoon_engine_log_bytes", in.LogBytes)
		s.put("gotycoon_engine_log_keep_seconds", in.LogKeep.Seconds())
		s.put("gotycoon_engine_horizon_age_seconds", in.HorizonAge.Seconds())
		s.count("gotycoon_engine_dead_tuples", in.DeadTuples)
		s.put("gotycoon_engine_oldest_transaction_seconds", in.OldestTransaction.Seconds())
		if in.LogAge != nil {
			s.put("gotycoon_engine_log_oldest_seconds", in.LogAge.Seconds())
		}
		if in.ReplicaLag != nil {
			s.put("gotycoon_engine_replica_lag_seconds", in.ReplicaLag.Seconds())
		}
	})
}
