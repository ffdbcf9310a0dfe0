package server

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"gotycoon/access"
	"gotycoon/admin"
	"gotycoon/admin/api"
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
	loops     *netio.Loops // nil: each connection has a goroutine
	data      *dataPort
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

// openDatabases opens the databases, whose work in the background has processors from the
// beginning.
func (r *root) openDatabases() error {
	r.cpus = newProcessors(r.cfg.SyncEach, func() *netio.Loops { return r.loops })
	return r.databases.open(r.live, r.cpus.work)
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
	r.cpus.watch(catalog)
	r.log.info("%s", durability(c))
	tellProtection(r.access, r.log)
	tellDatabases(r.access, catalog)
	return nil
}

// openLoops makes the loops in which connections rest. Requests to an engine wait, each for itself:
// there a goroutine for each connection is better.
func (r *root) openLoops() error {
	if r.databases.shared == nil {
		r.loops = netio.NewLoops(runtime.NumCPU())
	}
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
		MaxConns: r.cfg.Limits.conns(), Limits: &r.live.limits, Loops: r.loops, Meter: r.meters.meter, Requests: r.meters.memcache,
		Forward: r.forward, Secure: secure(r.tls), Log: r.log,
	})
	r.databases.silent = err != nil // the original says nothing more after this error
	return err
}

func (r *root) openServices() (err error) {
	r.services, err = r.cfg.Services.open(&servicesOptions{
		Options: services.Options{
			MaxConns: r.cfg.Limits.conns(), Limits: &r.live.limits, Loops: r.loops, Timeout: r.cfg.Timeout, Forward: r.forward, Access: r.access, Pages: r.pages,
			Meter: r.meters.meter, Logger: r.log.Logger,
		},
		Host: r.host, DB: r.databases.catalog.Services(), SID: r.cfg.sid(), Role: r.primary.role, Secure: secure(r.tls), Log: r.log,
	})
	return err
}
