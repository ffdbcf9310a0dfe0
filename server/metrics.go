package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/admin/exporter"
	"gotycoon/admin/status"
	"gotycoon/binproto"
	"gotycoon/db"
	"gotycoon/httpapi"
	"gotycoon/internal/forward"
	"gotycoon/internal/metrics"
	"gotycoon/internal/opcount"
	"gotycoon/memcache"
	"gotycoon/services/leader"
	"gotycoon/ulog"
)

// meters are where the requests of the protocols are measured and counted. Where nobody wants the
// figures the meter is still: it only shows requests to those who ask for them (monitor, hotkeys).
type meters struct {
	meter    *metrics.Meter // the services count their requests themselves
	http     httpapi.Meters
	bin      binproto.Meters
	memcache *metrics.Protocol
}

func newMeters(c AdminConfig, log logger) (m meters) {
	m.meter = metrics.New(metrics.Options{Slow: c.Slow, Sample: c.Sample, Logger: log.Logger, Still: !c.measures()})
	m.http, m.bin = httpapi.NewMeters(), binproto.NewMeters()
	m.http.Meter = m.meter
	m.http.Sampling, m.bin.Sampling = m.meter.Sampling(), m.meter.Sampling()
	m.memcache = memcache.NewRequests()
	return m
}

// Metrics returns the definitions of all metrics of a server, without those of Go and the process.
func Metrics() []exporter.Definition {
	parts := [][]metrics.Definition{memcache.Metrics(), forwardMetrics()}
	for _, row := range new(ServicesConfig).table() {
		parts = append(parts, row.metrics)
	}
	return exporter.All(append(parts, leader.Metrics(), standingMetrics(), alarmMetrics())...)
}

// published are the parts whose figures are published, all of them open.
type published struct {
	meters    *meters
	catalog   *db.Catalog
	counts    *opcount.Counts
	traffic   *traffic
	room      *room
	memcached *memcached
	services  running
	primary   *primary
	following *following
	standing  *standing
	onRole    *roleCommand
	replicas  *replicas
	snapshots *snapshots
	mover     *forward.Forwarder
	cluster   *clusterShown // nil: in none
	engine    *engineShown  // nil: the databases are this server's alone

	alarms       *alarms
	certificates certificates
	log          logger
}

// export is the figures that are to be published.
type export struct {
	protocols  []*metrics.Protocol
	ports      []status.Port
	collectors []prometheus.Collector
}

// newExport begins to observe the logs, and returns the figures of all parts.
func newExport(f published) *export {
	for _, l := range f.catalog.Logs() {
		l.Measure(ulog.NewObserver())
	}
	m := f.meters
	e := &export{protocols: []*metrics.Protocol{m.http.RPC, m.http.REST, m.bin.Binary}}
	e.port("data", f.traffic.connections)
	e.add(exporter.Records(f.counts), exporter.Databases(f.catalog), exporter.Room(f.room.figures), exporter.Logs(f.catalog), exporter.Backups(m.bin.Copies))
	if s := f.memcached.service; s != nil {
		e.protocols = append(e.protocols, m.memcache)
		e.port("memcached", s.Connections)
		e.add(exporter.Part(s.Figures()))
	}
	for _, s := range f.services {
		e.protocols = append(e.protocols, s.Requests())
		e.port(s.Name(), s.Connections)
		e.add(exporter.Part(s.Figures()))
	}
	if f.primary.role != nil {
		e.add(exporter.Part(f.primary.role.Figures()))
	}
	if f.following.follower != nil {
		e.add(exporter.Replication(f.following.figures))
	}
	e.add(exporter.Part(standingFigures(f.standing, f.onRole)))
	e.add(exporter.Part(alarmFigures(f.alarms, f.certificates, f.log)))
	if f.mover != nil {
		e.add(exporter.Part(forwardFigures(f.mover)))
	}
	if f.catalog.Log() != nil {
		e.add(exporter.Replicas(f.replicas.figures), exporter.Confirmations(f.replicas.confirmationFigures))
	}
	if f.cluster != nil {
		e.add(exporter.Cluster(f.cluster.figures))
	}
	if f.engine != nil {
		e.add(exporter.Engine(f.engine.figures))
	}
	if f.snapshots != nil {
		e.add(exporter.Snapshots(f.snapshots.figures))
	}
	e.add(exporter.Connections(e.ports...), exporter.Requests(m.meter, e.protocols...))
	return e
}

func (e *export) port(name string, connections func() (int, uint64)) {
	e.ports = append(e.ports, status.Port{Name: name, Connections: connections})
}

func (e *export) add(all ...prometheus.Collector) { e.collectors = append(e.collectors, all...) }
