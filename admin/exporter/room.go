package exporter

import "github.com/prometheus/client_golang/prometheus"

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
