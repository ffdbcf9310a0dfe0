package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gotycoon/admin/api"
	"gotycoon/admin/status"
	"gotycoon/cluster"
	"gotycoon/cluster/election"
	"gotycoon/internal/words"
	"gotycoon/replication"
)

// clusterShown is what a member shows of its cluster, to people and to those who measure.
type clusterShown struct {
	node     *clusterNode
	cfg      *ClusterConfig
	replicas *replicas
	dir      string // of what was put aside
}

// newClusterShown returns what a server shows of its cluster, nil where it is in none.
func newClusterShown(n *clusterNode, c *Config, r *replicas) *clusterShown {
	if n == nil {
		return nil
	}
	return &clusterShown{node: n, cfg: &c.Cluster, replicas: r, dir: c.clusterDir()}
}

// figures are the metrics of the cluster.
func (c *clusterShown) figures() status.Cluster {
	f := c.node.Figures()
	return status.Cluster{
		Name: c.cfg.Name, Term: f.Term, Leading: f.Serving, Required: f.Required, Members: len(f.Members), Followers: confirming(f.Members),
		Answering: f.Answering, Changes: f.Changes, Changed: f.Changed, Asides: len(asides(c.dir)), Stalled: c.node.Stalled(),
	}
}

// confirming returns how many followers can confirm updates of a primary.
func confirming(all []election.Member) int {
	n := 0
	for _, m := range all {
		if !m.Witness && !m.Joining {
			n++
		}
	}
	return max(0, n-1)
}

// State implements api.Cluster.
func (c *clusterShown) State(ctx context.Context) api.ClusterState {
	all, f := c.node.Survey(ctx), c.node.Figures()
	s := api.ClusterState{
		Name: c.cfg.Name, Vote: "the members", Self: c.node.self.Addr, Term: f.Term, Required: f.Required, Followers: confirming(f.Members),
		Changes: f.Changes, Changed: f.Changed.UnixMilli(), Trouble: c.trouble(), Members: []api.ClusterMember{},
	}
	if c.cfg.Etcd != "" {
		s.Vote = "the etcd"
	}
	if sync, uses := c.replicas.confirmation(); uses && f.Serving {
		s.Present, s.Waiting = &sync.Present, sync.Waiting
	}
	for _, m := range f.Members {
		of, answers := all[m.Name]
		row := api.ClusterMember{
			Address: m.Addr, Witness: m.Witness, Joining: m.Joining, Answers: answers, ServerID: int(m.SID), Asides: []api.ClusterAside{},
		}
		if answers {
			describe(&row, &of)
		}
		if row.Role == string(cluster.Leading) {
			s.Primary = row.Address
		}
		s.Members = append(s.Members, row)
	}
	return s
}

// describe adds what a member says of itself.
func describe(row *api.ClusterMember, of *cluster.Status) {
	row.Role, row.Term, row.Since, row.Follows = string(of.Role), of.Term, of.Since.UnixMilli(), of.Primary
	row.Missing, row.Trouble = of.Has.Incomplete, of.Trouble
	if of.Has.SID != 0 {
		row.ServerID = int(of.Has.SID)
	}
	if of.Role == cluster.Following && of.Has.Lag >= 0 {
		row.Seconds = &of.Has.Lag
	}
	for _, dir := range of.Asides {
		aside := api.ClusterAside{Dir: dir}
		if dir == of.Aside.Dir {
			aside.Updates = of.Aside.Updates
		}
		row.Asides = append(row.Asides, aside)
	}
}

// Order implements api.Cluster.
func (c *clusterShown) Order(ctx context.Context, o api.ClusterOrder) error {
	order := cluster.Order{Do: o.Do, Name: o.Name}
	if o.Number != nil {
		order.Number = *o.Number
	}
	return c.node.Do(ctx, order)
}

// trouble is what everybody who looks at this member must see of the cluster; empty: all is well.
func (c *clusterShown) trouble() string {
	f, name := c.node.Figures(), c.cfg.Name
	switch f.Role {
	case cluster.Waiting:
		if len(f.Members) == 0 {
			return fmt.Sprintf("This server is no member of the cluster %s yet: add it with 'ktremotemgr cluster add %s', asked of a member", name, c.node.self.Addr)
		}
		return because("This member of the cluster "+name+" knows no primary", c.node.Trouble())
	case cluster.Opening:
		return because("The cluster "+name+" has no primary yet, and this member is about to be it", c.node.Trouble())
	case cluster.Leading:
		sync, _ := c.replicas.confirmation()
		return lacking(&f, &sync)
	}
	if f.Leader == "" {
		return fmt.Sprintf("The cluster %s has no primary: nobody leads the vote, which needs a majority of its %d members", name, len(f.Members))
	}
	if why := c.node.Doubt(); why != "" {
		return fmt.Sprintf("The cluster %s has no primary: %s", name, why)
	}
	return ""
}

// because adds a reason to a text, if one is known.
func because(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + why
}

// lacking says on the primary which members are missing, and what that means for updates.
func lacking(f *cluster.Figures, sync *replication.QuorumState) string {
	var silent, parts []string
	for _, m := range f.Members {
		if answers, asked := f.Answering[m.Name]; asked && !answers {
			silent = append(silent, m.Name)
		}
	}
	if len(silent) > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d members of the cluster do not answer: %s", len(silent), len(f.Members), strings.Join(silent, ", ")))
	}
	switch {
	case sync.Present < sync.Required:
		parts = append(parts, fmt.Sprintf("Updates wait: each needs %s, and %d are there", words.Followers(sync.Required), sync.Present))
	case sync.Required > 0 && sync.Present == sync.Required && confirming(f.Members) > sync.Required:
		parts = append(parts, fmt.Sprintf("Each update needs %s, and no more are there: with one less, updates are refused", words.Followers(sync.Required)))
	}
	return strings.Join(parts, ". ")
}

// report adds the rows about the cluster. Servers in none have no such rows.
func (c *clusterShown) report(rows map[string]string) {
	if c == nil {
		return
	}
	f := c.node.Figures()
	rows["cluster_name"] = c.cfg.Name
	rows["cluster_role"] = string(f.Role)
	rows["cluster_members"] = strconv.Itoa(len(f.Members))
	rows["cluster_required"] = strconv.Itoa(f.Required)
	if n := len(asides(c.dir)); n > 0 {
		rows["cluster_aside_logs"] = strconv.Itoa(n)
	}
	if trouble := c.trouble(); trouble != "" {
		rows["cluster_trouble"] = trouble
	}
}

// alarms returns what is wrong with the cluster. While updates are refused for want of followers,
// the alarm of the followers says so, and says which are missing.
func (c *clusterShown) alarms(now time.Time) []alarm {
	text := c.trouble()
	if text == "" || len(c.replicas.alarms(now)) > 0 {
		return nil
	}
	return []alarm{{name: alarmCluster, text: text}}
}
