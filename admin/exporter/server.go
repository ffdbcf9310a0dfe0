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
