package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/admin/exporter"
	"gotycoon/admin/figures"
	"gotycoon/db"
	"gotycoon/internal/metrics"
	"gotycoon/internal/opcount"
	"gotycoon/memcache"
	"gotycoon/services/counter"
	"gotycoon/services/leader"
	"gotycoon/services/lock"
	"gotycoon/services/sequence"
	"gotycoon/ulog"
)

// Metrics returns the definitions of all metrics of a server, without those of Go and the process.
func Metrics() []exporter.Definition {
	return exporter.All(memcache.Metrics(), counter.Metrics(), lock.Metrics(), sequence.SequenceMetrics(),
		sequence.QuotaMetrics(), leader.Metrics())
}

// published are the parts whose figures are published, all of them open.
type published struct {
	meters    *meters
	catalog   *db.Catalog
	counts    *opcount.Counts
	traffic   *traffic
	room      *room
	memcached *memcached
	services  services
	primary   *primary
	following *following
	replicas  *replicas
	snapshots *snapshots
}

// export is the figures that are to be published.
type export struct {
	protocols  []*metrics.Protocol
	ports      []figures.Port
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
		e.service(s, m)
	}
	if f.primary.role != nil {
		e.add(exporter.Part(f.primary.role.Figures()))
	}
	if f.following.follower != nil {
		e.add(exporter.Replication(f.following.figures))
	}
	if f.catalog.Log() != nil {
		e.add(exporter.Replicas(f.replicas.figures))
	}
	if f.snapshots != nil {
		e.add(exporter.Snapshots(f.snapshots.figures))
	}
	e.add(exporter.Connections(e.ports...), exporter.Requests(m.meter, e.protocols...))
	return e
}

func (e *export) port(name string, connections func() (int, uint64)) {
	e.ports = append(e.ports, figures.Port{Name: name, Connections: connections})
}

func (e *export) add(all ...prometheus.Collector) { e.collectors = append(e.collectors, all...) }

// service adds one of the services with a port of its own.
func (e *export) service(s service, m *meters) {
	switch s := s.(type) {
	case *counter.Server:
		e.protocols = append(e.protocols, m.counter)
		e.port("counter", s.Connections)
		e.add(exporter.Part(s.Figures()))
	case *lock.Server:
		e.protocols = append(e.protocols, m.lock)
		e.port("lock", s.Connections)
		e.add(exporter.Part(s.Figures()))
	case *sequence.SequenceServer:
		e.protocols = append(e.protocols, m.sequence)
		e.port("sequence", s.Connections)
		e.add(exporter.Part(s.Figures()))
	case *sequence.QuotaServer:
		e.protocols = append(e.protocols, m.quota)
		e.port("quota", s.Connections)
		e.add(exporter.Part(s.Figures()))
	}
}
