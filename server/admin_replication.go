package server

import (
	"fmt"
	"time"

	"gotycoon/admin/exporter"
	"gotycoon/ulog"
)

// replication adds the metrics of the replication from a master.
func (e *export) replication() {
	if e.p.follower != nil {
		e.add(exporter.Replication(e.p.replicationNow))
	}
}

// replicationNow is what is known of the replication from a master.
func (p *process) replicationNow() exporter.Follower {
	at, _ := p.follower.Position()
	lag, following := p.lag(time.Now())
	return exporter.Follower{Following: following, Seconds: lag.Seconds(), Records: exporter.Unknown, Position: at.Time()}
}

// lag returns how far this server is behind the clock of its master, if it has one.
func (p *process) lag(now time.Time) (lag time.Duration, following bool) {
	if p.follower == nil {
		return 0, false
	}
	at, following := p.follower.Position()
	return max(0, time.Duration(int64(ulog.StampAt(now)-at))), following
}

// behind returns why this server lacks too much of its master.
func (p *process) behind(now time.Time) (reasons []string) {
	limit := p.cfg.Admin.ReadyLag
	if lag, following := p.lag(now); following && limit > 0 && lag > limit {
		reasons = append(reasons, fmt.Sprintf("behind its master: %.1f s, more than the %.1f s of -ready-lag", lag.Seconds(), limit.Seconds()))
	}
	return reasons
}
