package metrics

// This file says what a metric is: its name and help text, and how a part of the server hands over
// the present value. It knows no exporter, so that each part declares its metrics beside the
// counters behind them, and the exporter imports none of the parts.

// Kind is how a metric behaves.
type Kind string

// The kinds of metrics.
const (
	Counter      Kind = "counter"
	Gauge        Kind = "gauge"
	Distribution Kind = "histogram"
)

// Definition defines one metric.
type Definition struct {
	Name   string
	Kind   Kind
	Help   string
	Labels []string // names of the labels
}

// Define returns the definition of a metric with these labels.
func Define(name string, kind Kind, help string, labels ...string) Definition {
	return Definition{name, kind, help, labels}
}

// Source is a part of the server that has metrics.
type Source struct {
	Definitions []Definition
	// Read reports the present values. It is called for each scrape, by several goroutines at the
	// same time, and must not wait for anything that a stopping server waits for.
	Read func(put Put)
}

// Put reports the value of a metric of the Source, with a value for each of its labels.
type Put func(name string, value float64, labels ...string)
