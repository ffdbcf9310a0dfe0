package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/cluster"
	"gotycoon/cluster/election"
	"gotycoon/db"
	"gotycoon/httpapi"
	"gotycoon/internal/netio"
	"gotycoon/replication"
	"gotycoon/services/leader"
)

// electionTicks is how many ticks an election timeout has.
const electionTicks = 10

// resignTimeout limits how long a primary that stops looks for a successor.
const resignTimeout = 3 * time.Second

// clusterNode is this server's membership in a cluster, nil without one.
type clusterNode struct {
	*cluster.Node
	self    election.Member
	begun   sync.Once
	watcher atomic.Pointer[func()] // gets changes of the role
}

// clusterOptions are what a membership needs of this server.
type clusterOptions struct {
	Config   *Config
	Catalog  *db.Catalog
	Follower *replication.Follower // nil: it could not be opened, or this server is a witness
	Quorum   *replication.Quorum   // nil without an update log
	Role     *leader.Role          // nil without a services' database
	Members  *members
	Limits   *netio.Limits // of all connections of clients
	Log      logger
}

// openCluster makes this server a member, which takes part from its start on. It returns nil for a
// server in no cluster.
func openCluster(o clusterOptions) (*clusterNode, error) {
	c := o.Config
	if !c.Cluster.on() {
		return nil, nil // both are "none"
	}
	all, err := c.Cluster.list()
	if err != nil {
		return nil, err
	}
	self, err := c.Cluster.self(all, c.Port)
	if err != nil {
		return nil, err
	}
	n := &clusterNode{self: self}
	node := cluster.Options{
		Name: self.Name, Witness: self.Witness, Dir: c.clusterDir(), FS: c.FS, Required: c.required(all), DiskTimeout: c.Cluster.diskTimeout(), Logger: o.Log.Logger,
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			return o.Members.dial(ctx, addr, frame.MemberCluster, nil)
		},
		Changed: n.notice,
		Asides:  func() []string { return asides(c.clusterDir()) },
		Elector: func(t election.Transport) (election.Elector, func(string, []byte), error) {
			return openElector(c, self, all, t, o.Log)
		},
	}
	if !self.Witness {
		if o.Follower == nil {
			return nil, errors.New("the cluster: this server cannot replicate, see above")
		}
		node.Data = &clusterData{
			catalog: o.Catalog, follower: o.Follower, quorum: o.Quorum, role: o.Role, sid: c.sid(), dir: c.clusterDir(), cut: o.Limits.CutAll, log: o.Log,
		}
	}
	if err := o.Catalog.SetGuarded(true); err != nil {
		return nil, fmt.Errorf("the update log has failed: %w", err)
	}
	if n.Node, err = cluster.Open(node); err != nil {
		return nil, fmt.Errorf("the cluster %s: %w", c.Cluster.Name, err)
	}
	o.Members.name, o.Members.ours = c.Cluster.Name+"/"+self.Name, c.Cluster.Name
	o.Catalog.OnRefusal(func() error { return refusal(n.Node) })
	o.Members.cluster = n.Accept
	o.Limits.SetStanding(n.Node)
	return n, nil
}

// openElector opens the elector of the configuration.
func openElector(c *Config, self election.Member, all []election.Member, t election.Transport, log logger) (election.Elector, func(string, []byte), error) {
	if c.Cluster.Etcd != "" {
		etcd, err := election.ParseEtcd(c.Cluster.Etcd)
		if err != nil {
			return nil, nil, err
		}
		etcd.Cluster, etcd.Name, etcd.Members, etcd.Timeout, etcd.Log = c.Cluster.Name, self.Name, all, c.Cluster.Timeout, log.Logger
		e, err := election.OpenEtcd(etcd)
		if err != nil {
			return nil, nil, err
		}
		return e, func(string, []byte) {}, nil // its members exchange nothing
	}
	tick := c.Cluster.Timeout / electionTicks
	e, err := election.OpenRaft(election.RaftConfig{
		Cluster: c.Cluster.Name, Name: self.Name, Addr: self.Addr, Members: all, Dir: c.clusterDir(), FS: c.FS, Transport: t, Log: log.Logger,
		Tick: tick, ElectionTicks: electionTicks,
	})
	if err != nil {
		return nil, nil, err
	}
	return e, e.Receive, nil
}

// start begins to take part; calls after the first one change nothing.
func (n *clusterNode) start() {
	if n != nil {
		n.begun.Do(n.Start)
	}
}

// failed is closed when this server can be a member no more until it is started again; nil without
// a cluster.
func (n *clusterNode) failed() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.Failed()
}

// resign hands over to another member before this server stops.
func (n *clusterNode) resign() {
	if n != nil {
		ctx, cancel := context.WithTimeout(context.Background(), resignTimeout)
		defer cancel()
		n.Resign(ctx)
	}
}

// close leaves the cluster.
func (n *clusterNode) close(log logger) {
	if n == nil {
		return
	}
	n.start() // a node that was opened is closed after it has begun
	if err := n.Close(); err != nil {
		log.error("leaving the cluster: %v", err)
	}
}

// clients returns what clients can do about the cluster, nil where this server is in none.
func (n *clusterNode) clients() httpapi.Cluster {
	if n == nil {
		return nil // not an interface around nil
	}
	return n
}

// noData says why this server has no records; empty: it has.
func (n *clusterNode) noData() string {
	if n == nil || !n.self.Witness {
		return ""
	}
	return "this server is a witness of its cluster and keeps no data: ask another member"
}

// Rows implements httpapi.Cluster.
func (n *clusterNode) Rows(ctx context.Context) (names, values []string) {
	all := n.Survey(ctx)
	for _, m := range n.Status().Members {
		names = append(names, m.Name)
		s, ok := all[m.Name]
		if !ok {
			why := cmp.Or(n.Unreached(m.Name), "it does not answer this server")
			values = append(values, "role=unknown trouble="+why)
			continue
		}
		text := fmt.Sprintf("role=%s term=%d since=%.1f sid=%d primary=%s required=%d", s.Role, s.Term, time.Since(s.Since).Seconds(), s.Has.SID, s.Primary, s.Required)
		if s.Role == cluster.Following {
			text += " lag=" + lagSeconds(s.Has.Lag)
		}
		if s.Has.Incomplete != "" {
			text += fmt.Sprintf(" incomplete=%q", s.Has.Incomplete)
		}
		if s.Aside.Updates > 0 {
			text += fmt.Sprintf(" aside=%d:%s", s.Aside.Updates, s.Aside.Dir)
		}
		if s.Trouble != "" {
			text += " trouble=" + s.Trouble
		}
		values = append(values, text)
	}
	return names, values
}

// Change implements httpapi.Cluster.
func (n *clusterNode) Change(ctx context.Context, c httpapi.ClusterChange) error {
	o := cluster.Order{Do: c.Do, Name: c.Name, Number: c.Number}
	if o.Do == cluster.Add {
		if err := checkAddress(o.Name); err != nil {
			return &httpapi.ClusterError{Mistake: true, Err: err}
		}
		o.Member = election.Member{Name: o.Name, Addr: o.Name, Witness: c.Witness}
	}
	err := n.Do(ctx, o)
	if err == nil {
		return nil
	}
	_, mistake := errors.AsType[*cluster.Mistake](err)
	return &httpapi.ClusterError{Mistake: mistake, Err: err}
}

// Elsewhere implements httpapi.Cluster.
func (n *clusterNode) Elsewhere() (addr string, away bool) {
	v := n.View()
	if v.Role == cluster.Leading {
		return "", false
	}
	if v.Role == cluster.Following {
		addr = v.Primary.Addr
	}
	return addr, true
}

// standby says why this server is not the primary. It is empty on the primary.
func (n *clusterNode) standby() string {
	if err := n.Serving(); err != nil {
		return err.Error()
	}
	return ""
}

// required returns how many followers must have an update before it is acknowledged, in a new
// cluster: with the primary a majority of the members with data, unless -sync-replicas says it.
func (c *Config) required(all []election.Member) int {
	if c.Sync.Replicas > 0 {
		return c.Sync.Replicas
	}
	return withData(all) / 2
}

// notice tells of changes of the role.
func (n *clusterNode) notice() {
	if f := n.watcher.Load(); f != nil {
		(*f)()
	}
}

// watch implements standingSource.
func (n *clusterNode) watch(changed func()) { n.watcher.Store(&changed) }

// standing implements standingSource.
func (n *clusterNode) standing() Standing {
	v := n.View()
	s := Standing{Role: RoleNone, Primary: v.Primary.Addr, Term: v.Term}
	switch v.Role {
	case cluster.Leading:
		s.Role = RolePrimary
	case cluster.Following:
		s.Role = RoleReplica
	}
	return s
}
