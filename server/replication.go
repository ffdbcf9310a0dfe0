package server

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gotycoon/replication"
	"gotycoon/ulog"
)

// ReplicationConfig is what this server's replication can do beyond the original's.
type ReplicationConfig struct {
	GapContinue bool  // go on when an original master has not kept all updates (-gap-continue)
	CopyLimit   int64 // bytes per second of a full copy from a master (-copy-limit); 0: no limit
	Removals    int64 // that a file with lww=true remembers (-removals); 0: filestore.DefaultRemovals
	ReadOnly    bool  // refuse updates of clients, not those of the master (-slave-read-only)
}

// deadFollower is after which time without an acknowledgement of the network a follower's connection is given up.
const deadFollower = 15 * time.Second

// replicas lists the followers for clients.
type replicas struct{ list replication.Replicas }

// Rows implements httpapi.Replicas.
func (r *replicas) Rows(now time.Time) (names, values []string) {
	for _, f := range r.list.List() {
		names = append(names, strconv.FormatInt(f.ID, 10))
		values = append(values, fmt.Sprintf("peer=%s sid=%d white=%t ours=%t state=%s connected=%.3f position=%d seconds=%s records=%d contact=%.3f",
			f.Peer, f.SID, f.White, f.Ours, f.State, now.Sub(f.Since).Seconds(), f.Position, lag(f.Seconds), f.Records,
			max(0, now.Sub(f.Contact).Seconds())))
	}
	return names, values
}

// lag is a number of seconds as clients see it, -1 where it is not known.
func lag(seconds float64) string {
	if seconds < 0 {
		return "-1"
	}
	return fmt.Sprintf("%.3f", seconds)
}

// reportFollower adds the rows about this server's replication from a master (our own).
func (p *process) reportFollower(rows map[string]string, now time.Time) {
	st := p.follower.Status()
	rows["repl_state"] = string(st.State)
	rows["repl_lag_seconds"] = lag(st.Seconds)
	rows["repl_lag_records"] = strconv.FormatInt(st.Records, 10)
	rows["repl_last_contact"] = "-1"
	if !st.Contact.IsZero() {
		rows["repl_last_contact"] = fmt.Sprintf("%.3f", now.Sub(st.Contact).Seconds())
	}
	rows["repl_applied_records"] = strconv.FormatInt(st.Updates, 10)
	rows["repl_applied_bytes"] = strconv.FormatInt(st.Bytes, 10)
	rows["repl_dropped_records"] = strconv.FormatInt(st.Dropped, 10)
	rows["repl_read_only"] = strconv.FormatBool(p.catalog.Guarded())
	if st.Trouble != "" {
		rows["repl_trouble"] = st.Trouble
	}
	if c := st.Copy; st.State == replication.Copying {
		rows["repl_copy"] = fmt.Sprintf("db=%d records=%d total=%d bytes=%d", c.DB, c.Records, c.Total, c.Bytes)
	}
}

// reportReplicas adds the rows about the followers of this server, when there are any (our own).
func (p *process) reportReplicas(rows map[string]string) {
	list := p.replicas.list.List()
	if len(list) == 0 {
		return
	}
	slowest, records := 0.0, int64(0)
	for _, f := range list { // what is unknown of one is unknown of all
		if slowest = max(slowest, f.Seconds); f.Seconds < 0 {
			slowest = replication.Unknown
			break
		}
	}
	for _, f := range list {
		if records = max(records, f.Records); f.Records < 0 {
			records = replication.Unknown
			break
		}
	}
	rows["repl_slave_count"] = strconv.Itoa(len(list))
	rows["repl_slave_lag_seconds"] = lag(slowest)
	rows["repl_slave_lag_records"] = strconv.FormatInt(records, 10)
}

// dialMaster connects to a master.
type dialMaster = func(ctx context.Context, network, addr string) (net.Conn, error)

// followerOptions are the options of the replication from a master.
func (p *process) followerOptions(dial dialMaster) replication.FollowerOptions {
	o := replication.FollowerOptions{
		Catalog:     p.catalog,
		SID:         p.sid(),
		RTS:         p.cfg.RTSPath,
		Master:      replication.Master{Host: p.cfg.MasterHost, Port: p.cfg.MasterPort, Interval: p.cfg.MasterInterval},
		GapContinue: p.cfg.Replication.GapContinue,
		CopyLimit:   p.cfg.Replication.CopyLimit,
		Dial:        dial,
		Logger:      p.log.Logger,
	}
	if p.role != nil { // not an interface around nil
		o.Services = p.role
	}
	return o
}

// sourceOptions are the options of what feeds followers.
func (p *process) sourceOptions(log *ulog.Log, done <-chan struct{}) replication.SourceOptions {
	return replication.SourceOptions{
		Log: log, SID: p.sid(), Databases: p.catalog.Len(), Services: p.role != nil, Done: done, Replicas: &p.replicas.list, Logger: p.log.Logger,
		Now: p.cfg.Now,
	}
}

// limitSilence has the system give up the connection of a follower whose machine is gone: nobody waits for its heartbeats then.
func (c *conn) limitSilence() {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // without it the end is noticed later
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadFollower.Milliseconds()))
	})
}
