package server

import (
	"fmt"
	"strconv"
	"time"

	"gotycoon/httpapi"
	"gotycoon/replication"
	"gotycoon/ulog"
)

// stampsPerSecond is how much a time stamp grows in a second.
const stampsPerSecond = 1e9

// openFollower prepares the replication from a master, where there is an RTS file for it. A server that cannot use the file goes
// on without, as the original does: it has the data that its clients want.
func (p *process) openFollower() {
	if p.cfg.RTSPath == "" {
		return
	}
	p.guardClients() // also when the file cannot be used: what clients store here would be nowhere else
	dial, err := p.dialer()
	if err != nil {
		p.log.error("this server does not replicate: %v", err)
		return
	}
	f, err := replication.OpenFollower(p.followerOptions(dial))
	if err != nil {
		p.log.error("opening the RTS file failed: path=%s", p.cfg.RTSPath)
		p.log.error("this server does not replicate: %v", err)
		return
	}
	p.follower = f
	if p.cfg.Snapshots.Dir != "" && p.cfg.UpdateLog == "" && p.inMemory() {
		p.log.Warn("updates from a master that come after the latest snapshot of a database in memory are missing after a crash: " +
			"give this server an update log too (-ulog)")
	}
}

// guardClients has a server with -slave-read-only refuse updates of clients, before there are any.
func (p *process) guardClients() {
	if err := p.catalog.SetGuarded(p.cfg.Replication.ReadOnly); err != nil { // the server will end
		p.log.error("the update log has failed: %v", err)
	}
}

// inMemory tells whether there are databases that live on in snapshots only.
func (p *process) inMemory() bool {
	for i := range p.catalog.Len() {
		if !p.catalog.DB(i).OnDisk() {
			return true
		}
	}
	return false
}

// startFollower begins to replicate; once is enough.
func (p *process) startFollower() {
	if p.follower != nil {
		p.follower.Start()
	}
}

func (p *process) closeFollower() {
	if p.follower == nil {
		return
	}
	if err := p.follower.Close(); err != nil {
		p.log.error("closing the RTS file: %v", err)
	}
}

// replica returns what clients can do about the replication from a master, nil when there is no RTS file.
func (p *process) replica() httpapi.Follower {
	if p.follower == nil {
		return nil // not an interface around nil
	}
	return p.follower
}

// reportReplication adds the rows about the master, when there is one, and says that updates of clients are refused, when they are.
func (p *process) reportReplication(rows map[string]string, now time.Time) {
	if p.catalog.Guarded() {
		rows["repl_read_only"] = "true" // also where no master is followed, as on a master before a takeover
	}
	if p.follower == nil {
		return
	}
	m := p.follower.Master()
	at, following := p.follower.Position()
	if !following {
		return
	}
	rows["repl_master_host"] = m.Host
	rows["repl_master_port"] = strconv.Itoa(m.Port)
	rows["repl_timestamp"] = strconv.FormatUint(uint64(at), 10)
	rows["repl_interval"] = fmt.Sprintf("%.6f", replication.Milliseconds(m.Interval))
	p.reportFollower(rows, now)
	rows["repl_delay"] = fmt.Sprintf("%.6f", delay(now, p.present(now, at)))
}

// present is a position as it was a moment ago, when the master had nothing newer.
func (p *process) present(now time.Time, at ulog.Stamp) ulog.Stamp {
	if st := p.follower.Status(); st.Seconds == 0 {
		return max(at, min(ulog.StampAt(st.Contact), ulog.StampAt(now)))
	}
	return at
}

// delay is how old a position is, in seconds. One of the present millisecond may be a little ahead of it.
func delay(now time.Time, at ulog.Stamp) float64 {
	const milli = 1e-3
	d := float64(int64(ulog.StampAt(now)-at)) / stampsPerSecond
	if d < 0 && d > -milli {
		return 0
	}
	return d
}
