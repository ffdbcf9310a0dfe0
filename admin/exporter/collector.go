// Package exporter turns the figures of a server into Prometheus metrics. Each part of the server
// has a collector, which reads the figures at each scrape and keeps none. A table in the
// collector's file has the names, units and meanings; docs/monitoring.md lists them all.
//
// Labels contain neither keys nor other data of clients.
package exporter

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/internal/metrics"
)

// Definition defines one metric.
type Definition metrics.Definition

// The kinds of metrics.
const (
	Counter   = metrics.Counter
	Gauge     = metrics.Gauge
	Histogram = metrics.Distribution
)

// labels returns the names of a metric's labels.
func labels(names ...string) []string { return names }

// All returns the definitions of all metrics of a server, without those of Go and the process.
// parts are the metrics that other packages define.
func All(parts ...[]metrics.Definition) []Definition {
	all := slices.Concat(
		requestMetrics(), connectionMetrics(), recordMetrics(), databaseMetrics(), roomMetrics(), logMetrics(), followerMetrics(), replicaMetrics(), confirmationMetrics(), clusterMetrics(), engineMetrics(),
		snapshotMetrics(), copyMetrics(),
	)
	for _, part := range parts {
		all = append(all, converted(part)...)
	}
	return append(all, serverMetrics()...)
}

func converted(part []metrics.Definition) []Definition {
	all := make([]Definition, len(part))
	for i, d := range part {
		all[i] = Definition(d)
	}
	return all
}

// Part returns the metrics of a part that defines them itself.
func Part(of metrics.Source) prometheus.Collector {
	return newCollector(converted(of.Definitions), func(s *sink) { of.Read(s.put) })
}

// collector collects the metrics of one part of the server. It implements prometheus.Collector.
type collector struct {
	kinds map[string]metrics.Kind
	descs map[string]*prometheus.Desc
	read  func(*sink)
}

func newCollector(definitions []Definition, read func(*sink)) *collector {
	c := &collector{kinds: map[string]metrics.Kind{}, descs: map[string]*prometheus.Desc{}, read: read}
	for _, d := range definitions {
		c.kinds[d.Name] = d.Kind
		c.descs[d.Name] = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) { c.read(&sink{c, to}) }

// sink takes the values of one scrape.
type sink struct {
	c  *collector
	to chan<- prometheus.Metric
}

// put sends the value of a metric.
func (s *sink) put(name string, value float64, labels ...string) {
	kind := prometheus.GaugeValue
	if s.c.kinds[name] == Counter {
		kind = prometheus.CounterValue
	}
	s.to <- prometheus.MustNewConstMetric(s.c.descs[name], kind, value, clean(labels)...)
}

// count sends the value of a metric that counts something.
func (s *sink) count(name string, value int64, labels ...string) {
	s.put(name, float64(value), labels...)
}

// histogram sends the buckets of a metric. scale converts the observed values into base units.
func (s *sink) histogram(name string, h *metrics.Histogram, scale float64, labels ...string) {
	count, sum, upTo := h.Snapshot(scale)
	s.buckets(name, count, sum, upTo, labels...)
}

func (s *sink) buckets(name string, count uint64, sum float64, upTo map[float64]uint64, labels ...string) {
	s.to <- prometheus.MustNewConstHistogram(s.c.descs[name], count, sum, upTo, clean(labels)...)
}

// clean makes labels valid UTF-8: the name of a file may be any bytes.
func clean(labels []string) []string {
	for i, text := range labels {
		labels[i] = strings.ToValidUTF8(text, "\uFFFD")
	}
	return labels
}

// boolean returns 1 for true, 0 for false.
func boolean(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

const (
	perNano   = 1e-9 // seconds of a nanosecond
	asItIs    = 1
	unixNanos = 1e9
)
