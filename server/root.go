package server

import (
	"fmt"
	"sync/atomic"
	"time"

	"gotycoon/access"
	"gotycoon/admin"
	"gotycoon/admin/api"
	"gotycoon/binproto/frame"
	"gotycoon/internal/browser"
	"gotycoon/internal/forward"
	"gotycoon/internal/netio"
	"gotycoon/internal/opcount"
	"gotycoon/internal/tlsfiles"
	"gotycoon/internal/tlsport"
	"gotycoon/replication"
	"gotycoon/services"
)

// root is the composition root: the parts of one server, from the start to the end of its process.
// It gives each part what the part needs, and has no other duties.
type root struct {
	cfg     *Config
	live    *live // the part of cfg that can change
	log     logger
	sink    *sink
	signals *signals
	manager manager
	process int // ID
	started time.Time
	stack   stack
	serving bool // all parts have been open
	code    int  // that the script has asked for

	host      string // cfg.Host as an IPv4 address, or empty
	tls       *tlsport.Guard
	tlsFiles  *tlsfiles.Server // what the ports show; nil: plaintext
	pages     *browser.Policy
	access    *access.Guard
	members   *members
	meters    meters
	alarms    *alarms
	health    health
	console   *api.API // shown by admin only
	admin     *adminListener
	databases databases
	pid       pidFile
	room      *room
	cpus      *processors // nil: Go's number stays
	timers    *timers
	retention *retention // nil: there is no update log
	primary   primary
	cluster   atomic.Pointer[clusterNode] // nil: in none, or not open yet; the ports of services ask already
	shown     *clusterShown               // what is shown of the cluster; nil: in none
	following *following
	standing  *standing
	onRole    *roleCommand
	mover     *forward.Forwarder // nil without -forward
	forward   *netio.Forward     // the same, for the protocols
	replicas  replicas
	scripts   *scripts
	memcached *memcached
	services  running
	counts    opcount.Counts
	traffic   traffic
	data      *dataPort
}

// open opens the parts, and reports whether all are open. Parts that are open are on the stack. The
// errors of parts are the texts of log lines.
func (r *root) open() bool {
	for _, p := range r.parts() {
		var err error
		if r.cfg.opening != nil {
			err = r.cfg.opening(p.name)
		}
		if err == nil && p.open != nil {
			err = p.open()
		}
		if err != nil {
			failure(r.log, err)
			return false
		}
		r.stack.push(p)
	}
	r.serving = true
	return true
}

// parts are the parts in the order in which they are opened. The reverse is the stop order, see
// stack. A part without open has its place for the sake of the stop.
func (r *root) parts() []part {
	r.databases = databases{cfg: r.cfg, log: r.log}
	r.pid = pidFile{path: r.cfg.PIDPath, log: r.log}
	r.timers = newTimers(r.log)
	return []part{
		{"host", r.openHost, nil},
		{"TLS", r.openTLS, quietly(r.closeTLS)},
		{"access", r.openAccess, quietly(func() { r.access.Close() })},
		{"members", r.openMembers, nil},
		{"admin listener", r.openAdmin, quietly(func() { r.admin.close() })},
		{"last line", nil, quietly(r.logLast)},
		{"databases", func() error { return r.databases.open(r.live) }, r.databases.close},
		{"last snapshots", nil, func() bool { return r.databases.snapshots.last() }},
		{"PID file", nil, quietly(r.pid.remove)},
		{"room", r.openRoom, quietly(func() { r.room.close() })},
		{"confirmation by followers", r.openQuorum, nil},
		{"timers", nil, quietly(r.timers.close)},
		{"role", r.openRole, nil},
		{"follower", r.openFollowing, quietly(func() { r.following.close() })},
		{"script", r.openScript, quietly(func() { r.scripts.close() })},
		{"memcached", r.openMemcached, func() bool { return !r.serving || r.memcached.finish() }},
		{"services", r.openServices, func() bool { return r.services.close(r.log) }},
		{"cluster", r.openCluster, quietly(func() { r.cluster.Load().close(r.log) })},
		{"standing", r.openStanding, quietly(func() { r.onRole.close() })},
		{"snapshots", nil, quietly(func() { r.databases.snapshots.stop() })},
		{"console and metrics", r.publish, quietly(r.closeConsole)},
		{"work in the background", r.begin, nil},
	}
}

func (r *root) openHost() (err error) {
	if r.host, err = resolve(r.cfg.Host); err != nil {
		return fmt.Errorf("unknown host: %s", r.cfg.Host)
	}
	return nil
}

func (r *root) openTLS() (err error) {
	r.tls, r.tlsFiles, err = openTLS(&r.cfg.TLS, r.log)
	return err
}

// certificates are those that this server shows.
func (r *root) certificates() (all certificates) {
	if r.tlsFiles != nil {
		all = append(all, portsCertificate(&r.cfg.TLS, r.tlsFiles))
	}
	if r.members.expires != nil {
		all = append(all, masterCertificate(&r.cfg.TLS, r.members.expires))
	}
	return all
}

func (r *root) closeTLS() {
	if r.tls != nil {
		r.tls.Close()
	}
}

func (r *root) openAccess() (err error) {
	if r.pages, err = r.cfg.Access.pages(); err != nil {
		return err
	}
	r.access, err = openAccess(r.cfg.Access, r.cfg.Host, r.log)
	return err
}

func (r *root) openMembers() (err error) {
	if err := r.cfg.makeClusterDir(); err != nil {
		return err
	}
	r.members, err = openMembers(r.cfg.Members, &r.cfg.TLS, r.cfg.Port, r.access, r.log)
	return err
}

// openAdmin starts the admin listener, before anything that takes long.
func (r *root) openAdmin() (err error) {
	c := r.cfg.Admin
	r.health.phase.set("starting: the databases are being opened or restored")
	r.meters = newMeters(c, r.log)
	r.console = newConsole(consoleOptions{
		AdminConfig: c, ReadOnly: r.cfg.ReadOnly, Started: r.started, Health: &r.health, Access: r.access, Pages: r.pages,
		Limits: &r.live.limits, Log: r.log,
	})
	r.admin, err = openAdmin(adminOptions{
		AdminConfig: c, Access: r.access, Pages: r.pages, Secure: secure(r.tls), Started: r.started, MaxConns: r.cfg.Limits.conns(), Health: &r.health,
		Routes: func(s *admin.Server) { mountConsole(r.console, s) }, Log: r.log,
	})
	return err
}

// logLast writes the last line of a server that has served.
func (r *root) logLast() {
	if r.serving {
		r.log.system("================ [FINISH]: pid=%d", r.process)
	}
}

func (r *root) openRoom() error {
	r.room = newRoom(roomOptions{
		Catalog: r.databases.catalog, Requests: &r.live.limits, Limits: &r.live.room, ReadOnly: r.cfg.ReadOnly,
	})
	if catalog := r.databases.catalog; catalog.Log() != nil {
		r.retention = &retention{
			catalog: catalog, limits: r.live.retention, rare: func() bool { return r.live.snapshots.get() <= 0 }, log: r.log,
		}
	}
	r.room.look()
	return nil
}

func (r *root) openQuorum() (err error) {
	r.replicas.guarded = r.databases.catalog.Guarded
	r.replicas.quorum, err = openQuorum(r.cfg.Sync, r.cfg.sid(), r.cfg.Cluster.on(), r.databases.catalog, r.log)
	return err
}

func (r *root) openRole() error {
	role, err := openRole(r.databases.catalog.Services(), r.cfg.sid(), r.cfg.MasterHost != "", r.cfg.Cluster.on(), r.log)
	r.primary = primary{role: role, sid: r.cfg.sid(), replicas: &r.replicas}
	return err
}

// openFollowing opens the replication from a master, and says what this server promises.
func (r *root) openFollowing() error {
	c, catalog := r.cfg, r.databases.catalog
	o := followingOptions{
		ReplicationConfig: c.Replication, Catalog: catalog, Role: r.primary.role, SID: c.sid(), RTSPath: c.rtsPath(),
		Master:    replication.Master{Host: c.MasterHost, Port: c.MasterPort, Interval: c.MasterInterval},
		MasterTLS: &c.TLS, Snapshots: c.Snapshots.Dir != "" && c.UpdateLog == "", Log: r.log,
	}
	if c.Cluster.on() {
		o.Members = r.members
	}
	r.following = openFollowing(o)
	r.primary.following = r.following
	if c.Forward {
		r.mover = openForward(r.live, r.following, r.members, r.whereIsThePrimary, r.log)
		r.forward = &netio.Forward{Mover: r.mover}
	}
	r.cpus = newProcessors(catalog, c.SyncEach)
	r.log.info("%s", durability(c))
	tellProtection(r.access, r.log)
	tellDatabases(r.access, catalog)
	return nil
}

// openStanding finds out what this server is for clients that update records.
func (r *root) openStanding() error {
	var source standingSource = &replicationStanding{
		catalog: r.databases.catalog, follower: r.following.follower, readOnly: r.cfg.ReadOnly,
		master: replication.Master{Host: r.cfg.MasterHost, Port: r.cfg.MasterPort},
	}
	if n := r.cluster.Load(); n != nil {
		source = n
	}
	r.standing = openStanding(source)
	r.standing.quiet = !r.cfg.Cluster.on() && r.cfg.OnRole == ""
	r.onRole = newRoleCommand(r.cfg.OnRole, r.standing, r.log)
	return nil
}

func (r *root) openCluster() error {
	n, err := openCluster(clusterOptions{
		Config: r.cfg, Catalog: r.databases.catalog, Follower: r.following.follower, Quorum: r.replicas.quorum, Role: r.primary.role,
		Members: r.members, Limits: &r.live.limits, Log: r.log,
	})
	r.cluster.Store(n)
	return err
}

// whereIsThePrimary returns the address of the primary if that is another server.
func (r *root) whereIsThePrimary() (addr string, away bool) {
	if r.cfg.Cluster.on() {
		n := r.cluster.Load()
		if n == nil {
			return "", true
		}
		return n.Elsewhere()
	}
	return r.following.primary()
}

// standby says why this server is not the primary. It is empty on the primary.
func (r *root) standby() string {
	if n := r.cluster.Load(); n != nil {
		return n.standby()
	}
	return r.following.standby()
}

func (r *root) openScript() error {
	r.scripts = loadScript(scriptOptions{
		ScriptConfig: r.cfg.Script, Catalog: r.databases.catalog, Workers: min(r.cfg.Threads, MaxThreads), Room: r.cfg.Limits.scripts(), Log: r.log,
	})
	return nil
}

func (r *root) openMemcached() (err error) {
	r.memcached, err = loadMemcached(memcachedOptions{
		Plugins: r.cfg.Plugins, Host: r.host, DB: r.databases.catalog.DB(0), Started: r.started, Access: r.access,
		MaxConns: r.cfg.Limits.conns(), Limits: &r.live.limits, Meter: r.meters.meter, Requests: r.meters.memcache,
		Forward: r.forward, Secure: secure(r.tls), Log: r.log,
	})
	r.databases.silent = err != nil // the original says nothing more after this error
	return err
}

func (r *root) openServices() (err error) {
	r.services, err = r.cfg.Services.open(&servicesOptions{
		Options: services.Options{
			MaxConns: r.cfg.Limits.conns(), Limits: &r.live.limits, Timeout: r.cfg.Timeout, Forward: r.forward, Access: r.access, Pages: r.pages,
			Meter: r.meters.meter, Logger: r.log.Logger,
		},
		Host: r.host, DB: r.databases.catalog.Services(), SID: r.cfg.sid(), Role: r.primary.role, Secure: secure(r.tls), Log: r.log,
	})
	return err
}

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
	r.alarms = newAlarms(r.log)
	r.alarms.sources = (&alarmSources{
		catalog: catalog, room: r.room, replicas: &r.replicas, following: r.following, readyLag: c.Admin.ReadyLag, cluster: r.shown, certificates: r.certificates(),
	}).list()
	report := reporter{
		threads: c.Threads, started: r.started, traffic: &r.traffic, catalog: catalog, following: r.following, replicas: &r.replicas, primary: &r.primary,
		standing: r.standing, mover: r.mover, retention: r.retention, cluster: r.shown, alarms: r.alarms,
	}
	options := &settings{cfg: c, live: r.live, following: r.following, log: r.log}
	r.data = &dataPort{dataPortOptions: dataPortOptions{
		Host: r.host, Port: c.Port, PlainPort: c.TLS.PlainPort, Timeout: c.Timeout, MaxConns: c.Limits.conns(), CmdDir: c.CmdDir, SID: c.sid(), Now: c.Now,
		Retention: c.Retention, Catalog: catalog, Scripts: r.scripts, Following: r.following, Replicas: &r.replicas, Cluster: r.cluster.Load(), Primary: &r.primary, Settings: options, Report: report.report,
		Counts: &r.counts, Traffic: &r.traffic, Limits: &r.live.limits, Access: r.access, Members: r.members, Forward: r.forward, Pages: r.pages, Meters: &r.meters,
		Secure: secure(r.tls), Log: r.log,
	}}
	r.health.catalog, r.health.alarms, r.health.following, r.health.standing = catalog, r.alarms, r.following, r.standing
	if r.admin.server == nil {
		return nil
	}
	f := published{
		meters: &r.meters, catalog: catalog, counts: &r.counts, traffic: &r.traffic, room: r.room, memcached: r.memcached, services: r.services,
		primary: &r.primary, following: r.following, standing: r.standing, onRole: r.onRole, replicas: &r.replicas, snapshots: r.databases.snapshots, mover: r.mover, cluster: r.shown,
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
	if r.shown != nil {
		r.timers.every(leaderEvery, r.shown.leader.look)
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
		r.timers.paced(r.cpus.beats, func() { r.cpus.beat(time.Now()) })
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
