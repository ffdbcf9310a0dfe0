package server

import (
	"gotycoon/binproto"
	"gotycoon/httpapi"
	"gotycoon/internal/metrics"
	"gotycoon/memcache"
	"gotycoon/services/counter"
	"gotycoon/services/lock"
	"gotycoon/services/sequence"
)

// meters are where the requests of the protocols are measured and counted. Without anybody to look,
// they are empty.
type meters struct {
	meter                                    *metrics.Meter
	http                                     httpapi.Meters
	bin                                      binproto.Meters
	memcache, counter, lock, sequence, quota *metrics.Protocol
}

func newMeters(c AdminConfig, log logger) (m meters) {
	if !c.measures() {
		return m
	}
	m.meter = metrics.New(metrics.Options{Slow: c.Slow, Sample: c.Sample, Logger: log.Logger})
	m.http, m.bin = httpapi.NewMeters(), binproto.NewMeters()
	m.http.Sampling, m.bin.Sampling = m.meter.Sampling(), m.meter.Sampling()
	m.memcache = memcache.NewRequests()
	m.counter = counter.NewRequests()
	m.lock = lock.NewRequests()
	m.sequence, m.quota = sequence.NewSequenceRequests(), sequence.NewQuotaRequests()
	return m
}
