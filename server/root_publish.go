package server

import (
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/internal/forward"
)

// publish makes the data port, which is the last part that others look at, and has probes, metrics
// and the console show the parts.
func (r *root) publish() error {
	c, catalog := r.cfg, r.databases.catalog
	r.members.standby = r.standby
	if r.memcached.service != nil {
		r.members.ports[frame.MemberMemcached.String()] = r.memcached.service.Adopt
	}
	r.services.adopters(r.members.ports)
	r.shown = newClusterShown(r.cluster.Load(), c, &r.replicas)
	engine := newEngineShown(catalog, r.databases.shared)
	r.alarms = newAlarms(r.log)
	r.alarms.sources = (&alarmSources{
		catalog: catalog, shared: r.databases.shared, room: r.room, replicas: &r.replicas, following: r.following, readyLag: c.Admin.ReadyLag, cluster: r.shown, certificates: r.certificates(),
	}).list()
	report := reporter{
		threads: c.Threads, started: r.started, traffic: &r.traffic, catalog: catalog, following: r.following, replicas: &r.replicas, primary: &r.primary,
		standing: r.standing, mover: r.mover, retention: r.retention, cluster: r.shown, engine: engine, alarms: r.alarms,
	}
	options := &settings{cfg: c, live: r.live, following: r.following, log: r.log}
	r.data = &dataPort{dataPortOptions: dataPortOptions{
		Host: r.host, Port: c.Port, PlainPort: c.TLS.PlainPort, Timeout: c.Timeout, MaxConns: c.Limits.conns(), Watches: c.Limits.Watches, CmdDir: c.CmdDir, Console: c.Admin.Addr, SID: c.sid(), Now: c.Now,
		Retention: c.Retention, Catalog: catalog, Shared: r.databases.shared, Scripts: r.scripts, Following: r.following, Replicas: &r.replicas, Cluster: r.cluster.Load(), Primary: &r.primary, Settings: options, Report: report.report,
		Counts: &r.counts, Traffic: &r.traffic, Limits: &r.live.limits, Loops: r.loops, Access: r.access, Members: r.members, Forward: r.forward, Pages: r.pages, Meters: &r.meters,
		Secure: secure(r.tls), Log: r.log,
	}}
	r.health.catalog, r.health.alarms, r.health.following, r.health.standing = catalog, r.alarms, r.following, r.standing
	if r.admin.server == nil {
		return nil
	}
	f := published{
		meters: &r.meters, catalog: catalog, counts: &r.counts, traffic: &r.traffic, room: r.room, memcached: r.memcached, services: r.services,
		primary: &r.primary, following: r.following, standing: r.standing, onRole: r.onRole, replicas: &r.replicas, snapshots: r.databases.snapshots, mover: r.mover, cluster: r.shown, engine: engine,
		alarms: r.alarms, certificates: r.certificates(), log: r.log,
	}
	e := newExport(f)
	r.admin.publish(e.collectors...)
	openConsole(r.console, &shown{published: f, cfg: c, options: options, started: r.started}, e)
	return nil
}

// closeConsole says that databases and services are about to be closed. When it returns, nobody on
// the admin listener looks at them any more.
func (r *root) closeConsole() {
	r.health.phase.set("stopping")
	r.admin.gate.Close()
	r.console.Close()
}

// begin writes the PID file, since everything is open now, and starts the work in the background.
func (r *root) begin() error {
	r.pid.write(r.process)
	catalog := r.databases.catalog
	r.timers.every(idleEvery, func() {
		if r.traffic.idle() {
			catalog.Idle()
		}
	})
	if r.cfg.Access.Path != "" {
		r.timers.every(accessEvery, r.access.Poll)
	}
	if r.mover != nil {
		r.timers.every(forward.LookEvery, watchPrimary(r.mover, r.services))
	}
	if r.members.secrets != nil {
		r.timers.every(accessEvery, r.members.secrets.Poll)
	}
	r.timers.every(alarmsEvery, func() { r.alarms.look(time.Now()) })
	r.timers.every(roomEvery, func() {
		if r.room.look() {
			r.alarms.look(time.Now())
		}
	})
	if r.cpus != nil {
		r.timers.every(processorsEvery, func() { r.cpus.look(time.Now()) })
		r.timers.on(r.cpus.begins, func() { r.cpus.attend(time.Now()) })
		r.timers.paced(r.cpus.beats, func() { r.cpus.beat(time.Now) })
	}
	if r.loops != nil {
		spread := newSpread(r.loops)
		r.timers.every(spreadEvery, func() { spread.look(time.Now()) })
	}
	if !r.cfg.ReadOnly {
		r.timers.paced(r.live.sync, func() { r.databases.synchronize(r.live.syncHard.Load()) })
		if r.retention != nil {
			r.timers.every(retainEvery, r.retention.look)
		}
		compact := newCompactions(catalog.All(), r.live.compactRatio, r.log)
		r.timers.every(compactEvery, func() { compact.look(time.Now()) })
	}
	if every := r.manager.watchdogEvery(); every > 0 {
		r.timers.every(every, func() { r.manager.feedWatchdog(catalog) })
	}
	r.databases.snapshots.start()
	return nil
}
