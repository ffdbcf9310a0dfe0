package server

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"gotycoon/admin/exporter"
	"gotycoon/admin/figures"
	"gotycoon/replication"
	"gotycoon/ulog"
)

// replication adds the metrics of both sides of a replication.
func (e *export) replication() {
	if e.p.follower != nil {
		e.add(exporter.Replication(e.p.replicationNow))
	}
	if e.p.catalog.Log() != nil {
		e.add(exporter.Replicas(e.p.replicasNow))
	}
}

// replicationNow is what is known of the replication from a master.
func (p *process) replicationNow() figures.Follower {
	st := p.follower.Status()
	lag, following := p.lag(time.Now())
	return figures.Follower{
		Following: following, State: string(st.State), Seconds: lag.Seconds(), Records: st.Records,
		Position: st.Position.Time(), Contact: st.Contact,
		Applied: &figures.Applied{Updates: st.Updates, Bytes: st.Bytes, Dropped: st.Dropped},
	}
}

// replicasNow are the followers of this server.
func (p *process) replicasNow() []figures.Replica {
	list := p.replicas.list.List()
	all := make([]figures.Replica, len(list))
	for i, r := range list {
		all[i] = figures.Replica{
			SID: strconv.Itoa(int(r.SID)), Peer: withoutPort(r.Peer), State: string(r.State), Seconds: r.Seconds, Records: r.Records, Contact: r.Contact,
		}
	}
	return all
}

// withoutPort is an address that stays the same when a follower comes again.
func withoutPort(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}

// lag returns how far this server is behind its master, if it has one. Before the first contact it is what the clock says.
func (p *process) lag(now time.Time) (lag time.Duration, following bool) {
	if p.follower == nil {
		return 0, false
	}
	at, following := p.follower.Position()
	if st := p.follower.Status(); st.Seconds >= 0 {
		return time.Duration(st.Seconds * float64(time.Second)), following
	}
	return max(0, time.Duration(int64(ulog.StampAt(now)-at))), following
}

// behind returns why this server lacks too much of its master.
func (p *process) behind(now time.Time) (reasons []string) {
	lag, following := p.lag(now)
	if !following {
		return nil
	}
	switch st := p.follower.Status(); st.State {
	case replication.Copying:
		reasons = append(reasons, fmt.Sprintf("copying from its master: database %d, %d of %d records", st.Copy.DB, st.Copy.Records, st.Copy.Total))
	case replication.Gap:
		reasons = append(reasons, "lacks updates of its master: "+st.Trouble)
	case replication.Parted:
		reasons = append(reasons, "has updates that its master has lost: "+st.Trouble)
	}
	if limit := p.cfg.Admin.ReadyLag; limit > 0 && lag > limit {
		reasons = append(reasons, fmt.Sprintf("behind its master: %.1f s, more than the %.1f s of -ready-lag", lag.Seconds(), limit.Seconds()))
	}
	return reasons
}
