package exporter

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/internal/opcount"
)

func snapshotMetrics() []Definition {
	return []Definition{
		{"gotycoon_snapshot_timestamp_seconds", Gauge, "Instant of the newest snapshot of a database. Only databases that have one.", labels("database", "index")},
		{"gotycoon_snapshot_rounds_total", Counter, "Times that snapshots of all databases were taken, one after the other.", nil},
		{"gotycoon_snapshot_duration_seconds", Gauge, "How long the latest round took.", nil},
		{"gotycoon_snapshot_failures_total", Counter, "Snapshots that could not be taken.", nil},
	}
}

// SnapshotStats are the figures of snapshots.
type SnapshotStats struct {
	Rounds, Failures int64
	Duration         time.Duration // of the latest round
	Newest           []Snapshot
}

// Snapshot is the newest snapshot of a database.
type Snapshot struct {
	Database string
	Index    int
	At       time.Time
}

// Snapshots returns the metrics of a server that takes snapshots.
func Snapshots(now func() SnapshotStats) prometheus.Collector {
	return newCollector(snapshotMetrics(), func(s *sink) {
		stats := now()
		s.count("gotycoon_snapshot_rounds_total", stats.Rounds)
		s.count("gotycoon_snapshot_failures_total", stats.Failures)
		s.put("gotycoon_snapshot_duration_seconds", stats.Duration.Seconds())
		for _, n := range stats.Newest {
			s.put("gotycoon_snapshot_timestamp_seconds", seconds(n.At), n.Database, strconv.Itoa(n.Index))
		}
	})
}

func copyMetrics() []Definition {
	return []Definition{
		{"gotycoon_backup_running", Gauge, "Copies of databases that clients are fetching, for example ktremotemgr backup.", nil},
		{"gotycoon_backup_copies_total", Counter, "Copies of databases that clients have fetched, by result: done or failed.", labels("result")},
		{"gotycoon_backup_last_timestamp_seconds", Gauge, "End of the latest complete copy. Not before there is one.", nil},
		{"gotycoon_backup_duration_seconds", Gauge, "How long the latest complete copy took.", nil},
	}
}

// Backups returns the metrics of copies that clients fetch.
func Backups(n *opcount.Copies) prometheus.Collector {
	return newCollector(copyMetrics(), func(s *sink) {
		s.count("gotycoon_backup_running", n.Running.Load())
		s.count("gotycoon_backup_copies_total", n.Done.Load(), "done")
		s.count("gotycoon_backup_copies_total", n.Failed.Load(), "failed")
		s.put("gotycoon_backup_duration_seconds", float64(n.Nanos.Load())*perNano)
		if last := n.Last.Load(); last > 0 {
			s.put("gotycoon_backup_last_timestamp_seconds", float64(last)*perNano)
		}
	})
}
