package remote

import (
	"context"
	"fmt"
	"strconv"

	"gotycoon/client"
)

// clusterOf looks at the cluster of the server, or changes it.
func clusterOf(ctx context.Context, c *call) error {
	witness := c.withJSON().flags.Bool("witness", false, "with add: the server votes and has no data")
	if err := c.parse(1, 2); err != nil {
		return err
	}
	word, rest := string(c.args[0]), c.args[1:]
	change := client.ClusterChange{Do: word, Witness: *witness}
	switch word {
	case "status":
		if len(rest) > 0 {
			return usageError("status has no argument")
		}
	case "switchover", "add", "remove":
		if len(rest) == 0 {
			return usageError(word + " needs the address HOST:PORT of a member")
		}
		change.Name = string(rest[0])
	case "require":
		if len(rest) == 0 {
			return usageError("require needs the number of followers that must have an update")
		}
		n, err := strconv.Atoi(string(rest[0]))
		if err != nil || n < 0 {
			return usageError(fmt.Sprintf("%q is no number of followers", rest[0]))
		}
		change.Number = n
	default:
		return usageError(fmt.Sprintf("cluster %s: there are status, switchover, add, remove and require", word))
	}
	if _, err := c.open(ctx); err != nil {
		return err
	}
	if word == "status" {
		rows, err := c.client.ClusterStatus(ctx)
		if err != nil {
			return c.failed("DB::cluster_status", err)
		}
		return c.printStatus(rows)
	}
	return c.failed("DB::cluster_change", c.client.ChangeCluster(ctx, change))
}
