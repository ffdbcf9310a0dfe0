package exporter

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

func serverMetrics() []Definition {
	return []Definition{
		{"gotycoon_build_info", Gauge, "Always 1; what the program was built from.", labels("version", "go", "revision")},
		{"gotycoon_ready", Gauge, "1 when /readyz says so.", nil},
		{"gotycoon_start_timestamp_seconds", Gauge, "When the server was started.", nil},
	}
}

// Server describes the server as a whole.
type Server struct {
	Version, Revision string
	Started           time.Time
	Ready             func() bool
}

// Process returns the metrics of the server as a whole, of Go and of the process.
func Process(of Server) []prometheus.Collector {
	return []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newCollector(serverMetrics(), func(s *sink) {
			s.put("gotycoon_build_info", 1, of.Version, runtime.Version(), of.Revision)
			s.put("gotycoon_ready", boolean(of.Ready()))
			s.put("gotycoon_start_timestamp_seconds", seconds(of.Started))
		}),
	}
}

func roomMetrics() []Definition {
	return []Definition{
		{"gotycoon_updates_refusing", Gauge, "1 while updates are refused for want of room, by what is short: disk (-min-free), memory (-memory) or size (-max-size).", labels("reason")},
		{"gotycoon_updates_refused_total", Counter, "Updates refused for want of room.", labels("reason")},
		{"gotycoon_disk_free_bytes", Gauge, "Bytes free on the fullest disk that updates are written to.", labels("directory")},
		{"gotycoon_disk_least_bytes", Gauge, "Bytes that are kept free on it: with less, updates are refused.", labels("directory")},
	}
}

// RoomStats are the figures of room on disk and of refused updates.
type RoomStats struct {
	Place       string // directory on the fullest disk; empty: disks are not watched
	Free, Least int64
	Reasons     []Refusing
}

// Refusing is a reason to refuse updates.
type Refusing struct {
	Reason  string
	Now     bool  // updates are being refused
	Updates int64 // refused since the start
}

// Room returns the metrics of updates that are refused.
func Room(now func() RoomStats) prometheus.Collector {
	return newCollector(roomMetrics(), func(s *sink) {
		stats := now()
		for _, r := range stats.Reasons {
			s.put("gotycoon_updates_refusing", boolean(r.Now), r.Reason)
			s.count("gotycoon_updates_refused_total", r.Updates, r.Reason)
		}
		if stats.Place != "" {
			s.count("gotycoon_disk_free_bytes", stats.Free, stats.Place)
			s.count("gotycoon_disk_least_bytes", stats.Least, stats.Place)
		}
	})
}
