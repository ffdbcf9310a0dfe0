package server

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
		{"databases", r.openDatabases, r.databases.close},
		{"last snapshots", nil, func() bool { return r.databases.snapshots.last() }},
		{"PID file", nil, quietly(r.pid.remove)},
		{"room", r.openRoom, quietly(func() { r.room.close() })},
		{"confirmation by followers", r.openQuorum, nil},
		{"timers", nil, quietly(r.timers.close)},
		{"role", r.openRole, nil},
		{"follower", r.openFollowing, quietly(func() { r.following.close() })},
		{"script", r.openScript, quietly(func() { r.scripts.close() })},
		{"loops", r.openLoops, quietly(func() { r.loops.Close() })},
		{"memcached", r.openMemcached, func() bool { return !r.serving || r.memcached.finish() }},
		{"services", r.openServices, func() bool { return r.services.close(r.log) }},
		{"cluster", r.openCluster, quietly(func() { r.cluster.Load().close(r.log) })},
		{"standing", r.openStanding, quietly(func() { r.onRole.close() })},
		{"snapshots", nil, quietly(func() { r.databases.snapshots.stop() })},
		{"console and metrics", r.publish, quietly(r.closeConsole)},
		{"work in the background", r.begin, nil},
	}
}
