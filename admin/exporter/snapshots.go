package exporter

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
