package server

import (
	"gotycoon/binproto"
	"gotycoon/httpapi"
	"gotycoon/internal/metrics"
	"gotycoon/memcache"
)

// meters are where the requests of the protocols are measured and counted. Without anybody to look,
// they are empty.
type meters struct {
	meter    *metrics.Meter // the services count their requests themselves
	http     httpapi.Meters
	bin      binproto.Meters
	memcache *metrics.Protocol
}

func newMeters(c AdminConfig, log logger) (m meters) {
	if !c.measures() {
		return m
	}
	m.meter = metrics.New(metrics.Options{Slow: c.Slow, Sample: c.Sample, Logger: log.Logger})
	m.http, m.bin = httpapi.NewMeters(), binproto.NewMeters()
	m.http.Sampling, m.bin.Sampling = m.meter.Sampling(), m.meter.Sampling()
	m.memcache = memcache.NewRequests()
	return m
}
