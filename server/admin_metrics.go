package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/admin/exporter"
	"gotycoon/admin/figures"
	"gotycoon/binproto"
	"gotycoon/httpapi"
	"gotycoon/internal/figure"
	"gotycoon/internal/metrics"
	"gotycoon/memcache"
	"gotycoon/services/leader"
	"gotycoon/ulog"
)

// meters are where the requests of the protocols are counted. Without anybody to look, they are empty.
type meters struct {
	http     httpapi.Meters
	bin      binproto.Meters
	memcache *metrics.Protocol
}

func (p *process) newMeters() meters {
	m := meters{http: httpapi.NewMeters(), bin: binproto.NewMeters()}
	m.http.Sampling, m.bin.Sampling = p.admin.meter.Sampling(), p.admin.meter.Sampling()
	m.memcache = memcache.NewRequests()
	return m
}

// Metrics returns the definitions of all metrics of a server, without those of Go and the process.
func Metrics() []exporter.Definition {
	parts := [][]figure.Definition{memcache.Metrics()}
	for _, row := range new(ServicesConfig).table() {
		parts = append(parts, row.metrics)
	}
	return exporter.All(append(parts, leader.Metrics())...)
}

// export begins to publish the metrics of what runs. The databases are open, and so are the services.
func (p *process) export(running running, g *plugin) {
	if p.admin.server == nil {
		return
	}
	for _, l := range p.catalog.Logs() {
		l.Measure(ulog.NewObserver())
	}
	e := &export{p: p, protocols: []*metrics.Protocol{p.admin.meters.http.RPC, p.admin.meters.http.REST, p.admin.meters.bin.Binary}}
	e.port("data", func() (int, uint64) { return int(p.conns.Load()), p.allConns.Load() })
	e.add(exporter.Records(&p.counts), exporter.Databases(p.catalog), exporter.Room(p.room.stats), exporter.Logs(p.catalog), exporter.Backups(p.admin.meters.bin.Copies))
	if g.service != nil {
		e.protocols = append(e.protocols, p.admin.meters.memcache)
		e.port("memcached", g.service.Connections)
		e.add(exporter.Part(g.service.Figures()))
	}
	for _, s := range running {
		e.protocols = append(e.protocols, s.Requests())
		e.port(s.Name(), s.Connections)
		e.add(exporter.Part(s.Figures()))
	}
	if p.role != nil {
		e.add(exporter.Part(p.role.Figures()))
	}
	e.replication()
	if p.snapshots != nil {
		e.add(exporter.Snapshots(p.snapshotsNow))
	}
	e.openConsole(running)
	e.add(exporter.Connections(e.ports...), exporter.Requests(p.admin.meter, e.protocols...))
}

// export collects what is to be published.
type export struct {
	p         *process
	protocols []*metrics.Protocol
	ports     []figures.Port
}

func (e *export) port(name string, connections func() (int, uint64)) {
	e.ports = append(e.ports, figures.Port{Name: name, Connections: connections})
}

func (e *export) add(all ...prometheus.Collector) {
	for _, c := range all {
		if err := e.p.admin.server.Register(e.p.admin.gate.Collector(c)); err != nil {
			e.p.log.error("%v", err)
		}
	}
}

func (p *process) snapshotsNow() exporter.SnapshotStats {
	s := &p.snapshots.stats
	now := exporter.SnapshotStats{Rounds: s.rounds.Load(), Failures: s.failed.Load(), Duration: time.Duration(s.nanos.Load())}
	for _, d := range p.catalog.All() {
		if at, ok := s.at(d.Index()); ok {
			now.Newest = append(now.Newest, exporter.Snapshot{Database: d.Name(), Index: d.Index(), At: at.Time()})
		}
	}
	return now
}
