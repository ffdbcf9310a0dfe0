package exporter

import (
	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/admin/status"
	"gotycoon/internal/metrics"
	"gotycoon/internal/opcount"
)

func requestMetrics() []Definition {
	return []Definition{
		{"gotycoon_requests_total", Counter, "Requests answered, well or not.", labels("protocol", "command")},
		{"gotycoon_request_failures_total", Counter, "Requests refused or not carried out. A record that is not there is no failure.",
			labels("protocol", "command")},
		{"gotycoon_request_duration_seconds", Histogram, "Time from the arrival of a request to when its reply may leave, the wait for the update log " +
			"included. Pipelined requests have the time of their batch. Only commands that have been used.", labels("protocol", "command")},
		{"gotycoon_slow_requests_total", Counter, "Requests that took longer than -slow; 0 without it.", nil},
	}
}

// Requests returns the metrics of requests.
func Requests(m *metrics.Meter, protocols ...*metrics.Protocol) prometheus.Collector {
	bounds := metrics.Bounds()
	return newCollector(requestMetrics(), func(s *sink) {
		_, slow := m.Slow()
		s.put("gotycoon_slow_requests_total", float64(slow))
		for _, p := range protocols {
			for _, c := range p.Commands() {
				s.put("gotycoon_requests_total", float64(c.Count), p.Name(), c.Name)
				s.put("gotycoon_request_failures_total", float64(c.Failed), p.Name(), c.Name)
				if c.Timed == 0 {
					continue
				}
				upTo := make(map[float64]uint64, len(bounds))
				for i, bound := range bounds {
					upTo[bound] = c.Buckets[i]
				}
				s.buckets("gotycoon_request_duration_seconds", c.Timed, c.Seconds, upTo, p.Name(), c.Name)
			}
		}
	})
}

func connectionMetrics() []Definition {
	return []Definition{
		{"gotycoon_connections", Gauge, "Open connections.", labels("port")},
		{"gotycoon_connections_total", Counter, "Connections accepted.", labels("port")},
	}
}

// Connections returns the metrics of ports.
func Connections(ports ...status.Port) prometheus.Collector {
	return newCollector(connectionMetrics(), func(s *sink) {
		for _, p := range ports {
			open, total := p.Connections()
			s.count("gotycoon_connections", int64(open), p.Name)
			s.put("gotycoon_connections_total", float64(total), p.Name)
		}
	})
}

func recordMetrics() []Definition {
	return []Definition{
		{"gotycoon_record_operations_total", Counter, "Operations on records by HTTP and the binary protocol, each record of a bulk request one.",
			labels("operation")},
		{"gotycoon_record_misses_total", Counter, "Of these operations: those for which the record was not there, or should not have been.",
			labels("operation")},
		{"gotycoon_watches", Gauge, "Clients that are told of changes as they happen (/rpc/watch).", nil},
		{"gotycoon_watches_refused_total", Counter, "Watches refused because there were too many (-max-watches).", nil},
	}
}

// Records returns the metrics of the operations on records, which the report counts too, and of
// watches.
func Records(n *opcount.Counts) prometheus.Collector {
	return newCollector(recordMetrics(), func(s *sink) {
		s.count("gotycoon_record_operations_total", n.Set.Load(), "set")
		s.count("gotycoon_record_operations_total", n.Get.Load(), "get")
		s.count("gotycoon_record_operations_total", n.Remove.Load(), "remove")
		s.count("gotycoon_record_operations_total", n.Script.Load(), "script")
		s.count("gotycoon_record_operations_total", n.Misc.Load(), "misc")
		s.count("gotycoon_record_misses_total", n.SetMisses.Load(), "set")
		s.count("gotycoon_record_misses_total", n.GetMisses.Load(), "get")
		s.count("gotycoon_record_misses_total", n.RemoveMisses.Load(), "remove")
		s.count("gotycoon_watches", n.Watches.Load())
		s.count("gotycoon_watches_refused_total", n.WatchesRefused.Load())
	})
}
