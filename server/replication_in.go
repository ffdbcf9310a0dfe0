package server

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"gotycoon/admin/api"
	"gotycoon/admin/status"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/httpapi"
	"gotycoon/replication"
	"gotycoon/services/leader"
	"gotycoon/ulog"
)

// ReplicationConfig is what this server's replication can do beyond the original's.
type ReplicationConfig struct {
	GapContinue bool  // go on when an original master has not kept all updates (-gap-continue)
	CopyLimit   int64 // bytes per second of a full copy from a master (-copy-limit); 0: no limit
	Removals    int64 // that a file with lww=true keeps (-removals); 0: filestore.DefaultRemovals
	ReadOnly    bool  // refuse updates of clients, not those of the master (-slave-read-only)
}

// stampsPerSecond is how much a time stamp grows in a second.
const stampsPerSecond = 1e9

// following is the replication from a master: this server as a follower.
type following struct {
	log      logger
	catalog  *db.Catalog
	follower *replication.Follower // nil: this server follows nobody, and cannot be told to
	broken   error                 // why there is no follower although the options ask for one
}

// followingOptions are what a server knows of its master, and what the replication changes.
type followingOptions struct {
	ReplicationConfig
	Catalog   *db.Catalog
	Role      *leader.Role // nil without a services' database
	SID       uint16
	RTSPath   string // file with the position; empty: no replication, now or later
	Master    replication.Master
	MasterTLS *TLSConfig
	Members   *members // in a cluster: connects to the primary as a member; nil: this server is in none
	Snapshots bool     // databases in memory are kept in snapshots, without an update log
	Log       logger
}

// openFollowing prepares the replication where there is an RTS file for the position. A server that
// cannot use the file goes on without replication, as the original does: it has the data that its
// clients want.
func openFollowing(o followingOptions) *following {
	f := &following{log: o.Log, catalog: o.Catalog}
	if o.RTSPath == "" {
		return f
	}
	// Updates of clients are refused also when the RTS file cannot be used: what a client stored
	// here would be nowhere else.
	if err := o.Catalog.SetGuarded(o.ReadOnly); err != nil { // the server will end
		o.Log.error("the update log has failed: %v", err)
	}
	dial, err := o.dial()
	if err != nil {
		return f.fail(err)
	}
	options := replication.FollowerOptions{
		Catalog:     o.Catalog,
		SID:         o.SID,
		RTS:         o.RTSPath,
		Master:      o.Master,
		GapContinue: o.GapContinue,
		CopyLimit:   o.CopyLimit,
		Cluster:     o.Members != nil,
		Dial:        dial,
		Logger:      o.Log.Logger,
	}
	if o.Role != nil { // not an interface around nil
		options.Services = o.Role
	}
	follower, err := replication.OpenFollower(options)
	if err != nil {
		o.Log.error("opening the RTS file failed: path=%s", o.RTSPath)
		return f.fail(err)
	}
	f.follower = follower
	if o.Snapshots && anyInMemory(o.Catalog) {
		o.Log.Warn("updates from a master that come after the latest snapshot of a database in memory are missing after a crash: " +
			"give this server an update log too (-ulog)")
	}
	return f
}

// fail leaves a server without the replication that its options ask for.
func (f *following) fail(err error) *following {
	f.broken = err
	f.log.error("this server does not replicate: %v", err)
	return f
}

// dial returns the function that connects to masters, nil for plain TCP.
func (o *followingOptions) dial() (func(ctx context.Context, network, addr string) (net.Conn, error), error) {
	if o.Members == nil {
		return masterDial(o.MasterTLS, o.Log)
	}
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		return o.Members.dial(ctx, addr, frame.MemberReplica, nil)
	}, nil
}

// anyInMemory reports whether there are databases that survive the process in snapshots only.
func anyInMemory(c *db.Catalog) bool {
	for i := range c.Len() {
		if !c.DB(i).Info().OnDisk {
			return true
		}
	}
	return false
}

// start begins to replicate; calls after the first one change nothing.
func (f *following) start() {
	if f.follower != nil {
		f.follower.Start()
	}
}

// close ends the replication and saves its position.
func (f *following) close() {
	if f.follower == nil {
		return
	}
	if err := f.follower.Close(); err != nil {
		f.log.error("closing the RTS file: %v", err)
	}
}

// standby says why this server is not the primary: it has a master. It is empty on the primary.
func (f *following) standby() string {
	if addr, away := f.primary(); away {
		return "this server is not the primary: it follows " + addr
	}
	return ""
}

// primary returns the address of the primary if that is another server: the master, as long as this
// server has one.
func (f *following) primary() (addr string, away bool) {
	if f.follower == nil {
		return "", false
	}
	m := f.follower.Master()
	if m.Host == "" {
		return "", false
	}
	return net.JoinHostPort(m.Host, strconv.Itoa(m.Port)), true
}

// streams reports whether this server follows a master and has heard of the master lately.
func (f *following) streams() bool {
	return f.follower != nil && f.follower.Status().State == replication.Streaming
}

// reload tells the follower a new -riv. If -riv has not changed, the interval stays, since a client
// may have set another interval.
func (f *following) reload(interval time.Duration, changed []string) {
	if f.follower != nil && slices.Contains(changed, "riv") {
		m := f.follower.Master()
		f.follower.Tune(m.Host, m.Port, nil, &interval)
	}
}

// clients returns what clients can do about the replication, nil where this server cannot follow.
func (f *following) clients() httpapi.Follower {
	if f.follower == nil {
		return nil // not an interface around nil
	}
	return f.follower
}

// lag returns how far this server is behind its master, if it has one. Before the first contact it
// is the age of the position.
func (f *following) lag(now time.Time) (lag time.Duration, follows bool) {
	if f.follower == nil {
		return 0, false
	}
	at, follows := f.follower.Position()
	if st := f.follower.Status(); st.Seconds >= 0 {
		return time.Duration(st.Seconds * float64(time.Second)), follows
	}
	return max(0, time.Duration(int64(ulog.StampAt(now)-at))), follows
}

// staleness returns how old what this server has may be at most. Where lag is 0, the master has had
// nothing newer when it was heard last; there may be something since.
func (f *following) staleness(now time.Time) time.Duration {
	lag, _ := f.lag(now)
	if st := f.follower.Status(); lag == 0 {
		return now.Sub(st.Contact)
	}
	return lag
}

// copyProgress says how far a copy has come.
func copyProgress(c replication.CopyStatus) string {
	return fmt.Sprintf("database %d, %d of %d records", c.DB, c.Records, c.Total)
}

// figures are the metrics of the replication.
func (f *following) figures() status.Follower {
	st := f.follower.Status()
	lag, follows := f.lag(time.Now())
	return status.Follower{
		Following: follows, State: string(st.State), Seconds: lag.Seconds(), Records: st.Records,
		Position: st.Position.Time(), Contact: st.Contact,
		Applied: &status.Applied{Updates: st.Updates, Bytes: st.Bytes, Dropped: st.Dropped},
	}
}

// master is what the console shows of the replication beyond the metrics.
func (f *following) master() (m api.Master) {
	if f.follower == nil {
		return m
	}
	of, st := f.follower.Master(), f.follower.Status()
	if of.Host == "" {
		return m
	}
	m = api.Master{Address: net.JoinHostPort(of.Host, strconv.Itoa(of.Port)), Trouble: st.Trouble}
	if st.State == replication.Copying {
		m.Copy = copyProgress(st.Copy)
	}
	return m
}

// report adds the rows about the master, when there is one, and a row when updates of clients are
// refused. The rows of the original come first, then our own.
func (f *following) report(rows map[string]string, now time.Time) {
	guarded := strconv.FormatBool(f.catalog.Guarded())
	if f.catalog.Guarded() { // also without a master, as on a master before a takeover
		rows["repl_read_only"] = guarded
	}
	if f.follower == nil {
		return
	}
	m := f.follower.Master()
	at, follows := f.follower.Position()
	if !follows {
		return
	}
	rows["repl_master_host"] = m.Host
	rows["repl_master_port"] = strconv.Itoa(m.Port)
	rows["repl_timestamp"] = strconv.FormatUint(uint64(at), 10)
	rows["repl_interval"] = fmt.Sprintf("%.6f", replication.Milliseconds(m.Interval))

	st := f.follower.Status()
	rows["repl_state"] = string(st.State)
	rows["repl_lag_seconds"] = lagSeconds(st.Seconds)
	rows["repl_lag_records"] = strconv.FormatInt(st.Records, 10)
	rows["repl_last_contact"] = "-1"
	if !st.Contact.IsZero() {
		rows["repl_last_contact"] = fmt.Sprintf("%.3f", now.Sub(st.Contact).Seconds())
	}
	rows["repl_applied_records"] = strconv.FormatInt(st.Updates, 10)
	rows["repl_applied_bytes"] = strconv.FormatInt(st.Bytes, 10)
	rows["repl_dropped_records"] = strconv.FormatInt(st.Dropped, 10)
	rows["repl_read_only"] = guarded
	if st.Trouble != "" {
		rows["repl_trouble"] = st.Trouble
	}
	if c := st.Copy; st.State == replication.Copying {
		rows["repl_copy"] = fmt.Sprintf("db=%d records=%d total=%d bytes=%d", c.DB, c.Records, c.Total, c.Bytes)
	}
	if st.Seconds >= 0 { // the master had nothing newer then
		then := now.Add(-time.Duration(st.Seconds * float64(time.Second)))
		if st.Seconds == 0 {
			then = st.Contact
		}
		at = max(at, min(ulog.StampAt(then), ulog.StampAt(now)))
	}
	rows["repl_delay"] = fmt.Sprintf("%.6f", age(now, at))
}

// age is how old a position is, in seconds. A position within the present millisecond may be a
// little in the future: it counts as 0.
func age(now time.Time, at ulog.Stamp) float64 {
	const milli = 1e-3
	d := float64(int64(ulog.StampAt(now)-at)) / stampsPerSecond
	if d < 0 && d > -milli {
		return 0
	}
	return d
}
