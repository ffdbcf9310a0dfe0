package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gotycoon/cluster/election"
	"gotycoon/db"
	"gotycoon/db/expr"
	"gotycoon/internal/vfs"
)

// checkCluster finds what a member of a cluster cannot do without, and what it cannot have.
func (c *Config) checkCluster() error {
	k := &c.Cluster
	if !k.on() {
		if k.Members != "" || k.Advertise != "" || k.Join || k.Etcd != "" || k.Dir != "" || k.Timeout != 0 || k.DiskTimeout != 0 {
			return errors.New("-members, -advertise, -join, -cluster-etcd, -cluster-dir, -election-timeout and -disk-timeout need -cluster NAME")
		}
		return nil
	}
	all, err := k.list()
	if err != nil {
		return err
	}
	if k.Join == (len(all) > 0) {
		return errors.New("-cluster needs -members HOST:PORT,… on the servers of a new cluster, or -join on a server that is added to a cluster")
	}
	self, err := k.self(all, c.Port)
	if err != nil {
		return err
	}
	if k.Etcd != "" {
		if _, err := election.ParseEtcd(k.Etcd); err != nil {
			return fmt.Errorf("-cluster-etcd: %w", err)
		}
	}
	switch {
	case c.Sync.Degrade:
		return errors.New("-sync-degrade: in a cluster an operator decides that (ktremotemgr cluster require)")
	case k.Timeout != 0 && k.Timeout < shortestTimeout:
		return fmt.Errorf("-election-timeout: at least %v", shortestTimeout)
	case k.DiskTimeout != 0 && k.DiskTimeout < shortestDiskTimeout:
		return fmt.Errorf("-disk-timeout: at least %v", shortestDiskTimeout)
	case c.MasterHost != "":
		return errors.New("-mhost: in a cluster the members decide whom this server follows")
	case c.Members.Secret == "" && !c.TLS.toMaster():
		return errors.New("-cluster needs -cluster-secret FILE, the same on all members, or certificates for TLS between them")
	case self.Witness:
		return c.checkWitness()
	case c.UpdateLog == "":
		return errors.New("-cluster needs an update log (-ulog), from which the members replicate")
	case c.ServerID < 1:
		return errors.New("-cluster needs -sid above 0, another one on each member")
	case c.Plugins.Database != "":
		return errors.New("-pldb: a cluster replicates its own databases only")
	case c.ReadOnly:
		return errors.New("-ord: a member of a cluster has to store updates")
	}
	if others := withData(all) - 1; len(all) > 0 && c.Sync.Replicas > others {
		return fmt.Errorf("-sync-replicas %d: there are %d other members with data", c.Sync.Replicas, others)
	}
	gone, err := db.Missing(vfs.OS{}, c.UpdateLog, c.Databases)
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		return fmt.Errorf("%s is not there, and the update log %s has updates of it: put it back, or remove this member from the cluster, and add it again without its update log and without %s",
			strings.Join(gone, ", "), c.UpdateLog, c.clusterDir())
	}
	for _, text := range c.Databases {
		e, err := expr.Parse(text)
		if err == nil && e.Params.SyncRep >= 0 {
			return fmt.Errorf("%s: syncrep: in a cluster the same number of followers counts for all databases (ktremotemgr cluster require)", text)
		}
		if err == nil && e.Params.LWW {
			return fmt.Errorf("%s: lww=true is for servers that follow each other; in a cluster it would keep what was put aside", text)
		}
		if !survives(text) && c.Snapshots.Dir == "" {
			if text == memoryDatabase {
				text = "the database in memory (:), which a server has when none is named"
			}
			return fmt.Errorf("%s: a database of a cluster must survive the process: use a file (.kct, .kch), or snapshots (-bgs)", text)
		}
	}
	return nil
}

// checkWitness finds what a server without data cannot have.
func (c *Config) checkWitness() error {
	named := ""
	switch {
	case len(c.Databases) > 1 || len(c.Databases) == 1 && c.Databases[0] != memoryDatabase:
		named = "databases"
	case c.UpdateLog != "":
		named = "-ulog"
	case c.Plugins.Server != "" || c.Plugins.MemcachePort != 0:
		named = "memcached"
	case c.Services.on():
		named = "the ports of services"
	case c.Script.Path != "":
		named = "-scr"
	case c.Forward:
		named = "-forward"
	default:
		return nil
	}
	return fmt.Errorf("this server is a witness of its cluster, which keeps no data and serves no clients: start it without %s", named)
}

// makeClusterDir makes the directory of what the election and the replication remember.
func (c *Config) makeClusterDir() error {
	if !c.Cluster.on() {
		return nil
	}
	if err := vfs.MakeDir(vfs.OS{}, c.clusterDir(), 0o755); err != nil {
		return fmt.Errorf("-cluster-dir: %w", err)
	}
	return nil
}

// clusterDir is where the election and the replication keep what they must remember.
func (c *Config) clusterDir() string {
	if c.Cluster.Dir != "" {
		return c.Cluster.Dir
	}
	if c.UpdateLog == "" {
		return "cluster"
	}
	return strings.TrimRight(c.UpdateLog, "/") + ".cluster"
}

// servicesDatabase returns the expression of the services' database. A member of a cluster always
// has one: the first update of each term is in it.
func (c *Config) servicesDatabase() string {
	if d := c.Services.database(); d != "" || !c.Cluster.on() || c.UpdateLog == "" {
		return d
	}
	return filepath.Join(c.clusterDir(), DefaultServices)
}

// rtsPath returns the file of the replication's position.
func (c *Config) rtsPath() string {
	if c.RTSPath == "" && c.Cluster.on() && c.UpdateLog != "" {
		return filepath.Join(c.clusterDir(), "rts")
	}
	return c.RTSPath
}

// survives reports whether a database is a file. Errors of Parse are reported when the database is
// opened.
func survives(text string) bool {
	e, err := expr.Parse(text)
	return err != nil || e.Kind.OnDisk()
}
