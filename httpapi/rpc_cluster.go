package httpapi

import (
	"context"
	"time"
)

// Procedures on the cluster of the server.

const (
	clusterStatusTime = 2 * time.Second
	clusterChangeTime = 60 * time.Second
)

func rpcClusterStatus(c *call) error {
	if c.opts.Cluster == nil {
		return errNoCluster
	}
	if err := c.beginLong(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), clusterStatusTime)
	defer cancel()
	names, values := c.opts.Cluster.Rows(ctx)
	for i := range names {
		c.out.addText(names[i], values[i])
	}
	return nil
}

func rpcClusterChange(c *call) error {
	if c.opts.Cluster == nil {
		return errNoCluster
	}
	do, _ := c.in.Get("do")
	name, _ := c.in.Get("name")
	if len(do) == 0 {
		return errInvalidParameters
	}
	change := ClusterChange{Do: string(do), Name: string(name), Witness: c.in.Has("witness"), Number: int(c.in.intOr("number", 0))}
	if err := c.beginLong(); err != nil {
		return err
	}
	// A switchover disconnects all clients of the former primary, but this one is to hear of it.
	c.conn.Exempt()
	c.req.KeepAlive = false
	ctx, cancel := context.WithTimeout(context.Background(), clusterChangeTime)
	defer cancel()
	return c.opts.Cluster.Change(ctx, change)
}
