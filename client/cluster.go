package client

import (
	"context"
	"strconv"
)

// ClusterChange is a change of a server's cluster.
type ClusterChange struct {
	// Do is "switchover": Name becomes the primary; "add": Name becomes a member; "remove": Name is
	// no member any more; or "require": updates are answered when Number followers have them.
	Do      string
	Name    string // HOST:PORT of a member
	Witness bool   // with "add": the server votes and has no data
	Number  int    // with "require"
}

// ClusterStatus lists the members of the server's cluster. Each row is named by a member; its value
// has fields NAME=VALUE with blanks between them. The last field, trouble, may have blanks itself.
func (c *Client) ClusterStatus(ctx context.Context) (Rows, error) {
	return c.DB("").Call(ctx, "cluster_status")
}

// ChangeCluster has the primary of the server's cluster change the cluster. It returns when that is
// done. After an error a switchover may have been begun: ClusterStatus tells.
func (c *Client) ChangeCluster(ctx context.Context, change ClusterChange) error {
	params := []string{"do", change.Do, "name", change.Name, "number", strconv.Itoa(change.Number)}
	if change.Witness {
		params = append(params, "witness", "")
	}
	_, err := c.DB("").Call(ctx, "cluster_change", params...)
	return err
}
