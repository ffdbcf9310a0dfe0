package remote

import "context"

// listReplicas prints the followers of the server.
func listReplicas(ctx context.Context, c *call) error {
	if err := c.withJSON().parse(0, 0); err != nil {
		return err
	}
	if _, err := c.open(ctx); err != nil {
		return err
	}
	rows, err := c.client.Replicas(ctx)
	if err != nil {
		return c.failed("DB::replicas", err)
	}
	return c.printStatus(rows)
}

// guardOptions are the options of tunerepl that switch whether clients may update.
type guardOptions struct {
	call   *call
	ro, rw *bool
}

func (c *call) guardOptions() guardOptions {
	return guardOptions{c,
		c.flags.Bool("ro", false, "refuse updates of clients, but not those of the master"),
		c.flags.Bool("rw", false, "accept updates of clients")}
}

// set tells the server. only tells that nothing else was asked for.
func (g guardOptions) set(ctx context.Context) (only bool, err error) {
	if !*g.ro && !*g.rw {
		return false, nil
	}
	if *g.ro && *g.rw {
		return false, usageError("-ro and -rw exclude each other")
	}
	c := g.call
	if _, err := c.open(ctx); err != nil {
		return false, err
	}
	err = c.failed("DB::tune_replication", c.client.SetReadOnly(ctx, *g.ro))
	asked := len(c.args) > 0
	for _, name := range []string{"mport", "ts", "iv"} {
		asked = asked || c.flags.Changed(name)
	}
	if asked && err == nil {
		err = c.client.Close() // another is opened for the rest
	}
	return !asked, err
}
