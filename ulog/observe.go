package ulog

import (
	"time"

	"gotycoon/internal/metrics"
)

// Observer measures what a Log does. A nil Observer measures nothing and does not look at the clock.
type Observer struct {
	Fsyncs  *metrics.Histogram // nanoseconds
	Records *metrics.Histogram // of a group
	Bytes   *metrics.Histogram // of a group
}

// NewObserver returns an Observer that has seen nothing.
func NewObserver() *Observer {
	return &Observer{
		Fsyncs:  metrics.NewTimes(),
		Records: metrics.NewHistogram(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000),
		Bytes:   metrics.NewHistogram(1<<8, 1<<10, 1<<12, 1<<14, 1<<16, 1<<18, 1<<20, 1<<22, 1<<24),
	}
}

// Measure has the log measured from now on, by one Observer at a time.
func (l *Log) Measure(o *Observer) { l.observer.Store(o) }

// Observer returns what Measure was given last, or nil.
func (l *Log) Observer() *Observer { return l.observer.Load() }

func (o *Observer) group(g *group) {
	if o != nil {
		o.Records.Observe(int64(g.count - g.notes))
		o.Bytes.Observe(g.size())
	}
}

func (o *Observer) begin() (now time.Time) {
	if o != nil {
		now = time.Now()
	}
	return now
}

func (o *Observer) synced(begun time.Time) {
	if o != nil && !begun.IsZero() {
		o.Fsyncs.Observe(int64(time.Since(begun)))
	}
}
