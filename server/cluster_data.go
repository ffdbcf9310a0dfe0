package server

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"gotycoon/cluster"
	"gotycoon/cluster/election"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/replication"
	"gotycoon/services/leader"
	"gotycoon/ulog"
)

// clusterData is what this server has as a member of its cluster. It implements cluster.Data.
type clusterData struct {
	catalog  *db.Catalog
	follower *replication.Follower
	quorum   *replication.Quorum
	role     *leader.Role
	sid      uint16
	begun    ulog.Stamp // end of the log at the start
	dir      string     // for what SetAside finds
	cut      func()     // disconnects all clients
	log      logger
}

// Inventory implements cluster.Data. What it names is as safe here as the mode promises.
func (d *clusterData) Inventory() (inv cluster.Inventory, err error) {
	log := d.catalog.Log()
	last := log.Last()
	if err := log.Wait(last); err != nil {
		return inv, err
	}
	inv = d.upTo(last)
	inv.Empty, err = d.empty()
	return inv, err
}

// Glance implements cluster.Data.
func (d *clusterData) Glance() cluster.Inventory { return d.upTo(d.catalog.Log().Last()) }

// Disk implements cluster.Data.
func (d *clusterData) Disk() cluster.Disk {
	p := d.catalog.Log().Progress()
	return cluster.Disk{Waiting: p.Waiting, Done: [4]uint64{uint64(p.Taken), uint64(p.Safe), uint64(p.Synced), uint64(p.Kept)}}
}

// upTo says what is here, and in the log up to a stamp.
func (d *clusterData) upTo(last ulog.Stamp) (inv cluster.Inventory) {
	log := d.catalog.Log()
	at := d.follower.Standing()
	inv = cluster.Inventory{SID: d.sid, Follows: at.Master, Base: at.Base.Log, BaseFrom: uint64(at.Base.At), BaseOwn: uint64(at.Base.Own)}
	newest, _ := log.NewestUpdate()
	if newest == 0 { // it is in an older segment
		newest = last
	}
	inv.Log, inv.Last, inv.Newest = ulog.LogKey(log.ID()), uint64(last), uint64(newest)
	inv.Marks.Marks = map[uint64]uint64{}
	for key, stamp := range at.Marks {
		inv.Marks.Marks[key] = uint64(stamp)
	}
	if at.Partial {
		inv.Incomplete = "a copy of the primary's databases has not come to its end"
	}
	st := d.follower.Status()
	switch st.State {
	case replication.Copying:
		inv.Incomplete = "copying from the primary: " + copyProgress(st.Copy)
	case replication.Streaming: // what Standing says is of the time before
		inv.Incomplete = ""
	}
	inv.Lag = st.Seconds
	if lacking := d.lacking(); lacking != "" && at.Base.Own <= d.begun { // no copy since the start
		inv.Incomplete = lacking
	}
	return inv
}

// lacking says which database was opened without updates that the update log has, such as an older
// copy that somebody has put in its place.
func (d *clusterData) lacking() string {
	for _, one := range d.catalog.All() {
		if info := one.Info(); info.PassedOver != nil {
			return fmt.Sprintf("%s was opened without updates that are in the update log (%v)", info.Path, info.PassedOver)
		}
	}
	return ""
}

// empty reports whether there is no record.
func (d *clusterData) empty() (bool, error) {
	for i := range d.catalog.Len() {
		if n, err := d.catalog.DB(i).Count(nil); n > 0 || err != nil {
			return false, err
		}
	}
	return true, nil
}

// Halt implements cluster.Data.
func (d *clusterData) Halt(ctx context.Context) error {
	d.role.Settle()
	return d.follower.Halt(ctx)
}

// Follow implements cluster.Data.
func (d *clusterData) Follow(primary election.Member, term uint64, join *cluster.Join) {
	host, port := split(primary.Addr)
	e := replication.Election{Term: term}
	if join != nil {
		e.From = new(ulog.Stamp(join.From))
		e.Had = func(log uint64, at ulog.Stamp) bool { return join.Had(log, uint64(at)) }
	}
	d.role.Deny(primary.Addr + " is the primary of the cluster")
	d.follower.Succeed(host, port, e)
}

// Replace implements cluster.Data.
func (d *clusterData) Replace(primary election.Member, term uint64) {
	host, port := split(primary.Addr)
	d.role.Deny(primary.Addr + " is the primary of the cluster")
	d.follower.Recopy()
	d.follower.Succeed(host, port, replication.Election{Term: term})
}

// split takes an address apart that checkAddress has found good.
func split(addr string) (host string, port int) {
	host, text, _ := net.SplitHostPort(addr)
	port, _ = strconv.Atoi(text)
	return host, port
}

// Lead implements cluster.Data. The services' claim is the first update of the term. Its stamp is
// above what the former primary has promised this server, as far as slaves outside of the cluster
// may be: they go on with their positions in the log of this one.
func (d *clusterData) Lead(_ uint64, rule cluster.Rule) (begun uint64, err error) {
	d.role.Settle() // it may have been the primary of this very term
	d.Require(rule)
	d.quorum.Unfence()
	d.catalog.Log().Pass(d.follower.Standing().Position)
	if err := d.role.Stake(); err != nil {
		return 0, err
	}
	return uint64(d.catalog.Log().Last()), nil
}

// Require implements cluster.Data.
func (d *clusterData) Require(rule cluster.Rule) {
	d.quorum.SetCounts(counting(rule))
	d.quorum.SetRequired(rule.Required)
}

// Confirmed implements cluster.Data.
func (d *clusterData) Confirmed(ctx context.Context, stamp uint64) error {
	return d.quorum.AwaitRequired(ctx, ulog.Stamp(stamp))
}

// Fulfilled implements cluster.Data.
func (d *clusterData) Fulfilled(ctx context.Context, rule cluster.Rule, stamp uint64) error {
	return d.quorum.AwaitRule(ctx, rule.Required, counting(rule), ulog.Stamp(stamp))
}

// counting returns the function that tells which followers count.
func counting(rule cluster.Rule) func(sid uint16) bool {
	return func(sid uint16) bool { return slices.Contains(rule.Counts, sid) }
}

// Caught implements cluster.Data.
func (d *clusterData) Caught(ctx context.Context, sid uint16, stamp uint64) error {
	return d.quorum.AwaitFollower(ctx, sid, ulog.Stamp(stamp))
}

// Ready implements cluster.Data.
func (d *clusterData) Ready() error { return d.role.Ready() }

// Open implements cluster.Data.
func (d *clusterData) Open() {
	d.role.Grant()
	d.catalog.Guard(false)
}

// Shut implements cluster.Data.
func (d *clusterData) Shut() (last uint64, err error) {
	d.role.Deny("this server hands over to another member of the cluster")
	err = d.catalog.SetGuarded(true)
	return uint64(d.catalog.Log().Last()), err
}

// StepDown implements cluster.Data. The epoch has ended: the connections of clients answer nothing
// any more, so the fence is for those who wait, and for connections that have been made since. They
// are cut while the fence is up and updates are refused: what they have stored is confirmed by
// nobody, and behind the fence no followers are required.
//
// The log may still have to write the last updates: Inventory waits for it, and Halt for the
// services.
func (d *clusterData) StepDown(reason error) {
	d.quorum.Fence(&dberr.Error{Code: dberr.SystemError, Message: reason.Error(), Err: dberr.ErrUnconfirmed})
	d.catalog.Guard(true)
	d.role.Revoke(reason.Error())
	d.cut()
	d.quorum.SetRequired(0)
	d.quorum.Unfence()
}
