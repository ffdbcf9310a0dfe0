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

// roleOptions are the options of tunerepl that say what the server is, whoever its master is.
type roleOptions struct {
	call                   *call
	ro, rw, primary, force *bool
}

func (c *call) roleOptions() roleOptions {
	return roleOptions{c,
		c.flags.Bool("ro", false, "refuse updates of clients, but not those of the master"),
		c.flags.Bool("rw", false, "accept updates of clients"),
		c.flags.Bool("primary", false, "make the server the one that changes quotas and gives out fencing tokens"),
		c.flags.Bool("force", false, "do so although it may not have all that the one before it had (with -primary)")}
}

// set tells the server. only tells that nothing else was asked for.
func (o roleOptions) set(ctx context.Context) (only bool, err error) {
	if !*o.ro && !*o.rw && !*o.primary && !*o.force {
		return false, nil
	}
	switch {
	case *o.ro && *o.rw:
		return false, usageError("-ro and -rw exclude each other")
	case *o.force && !*o.primary:
		return false, usageError("-force needs -primary")
	}
	c := o.call
	if _, err := c.open(ctx); err != nil {
		return false, err
	}
	if *o.ro || *o.rw {
		err = c.client.SetReadOnly(ctx, *o.ro)
	}
	if *o.primary && err == nil {
		err = c.client.BecomePrimary(ctx, *o.force)
	}
	asked := len(c.args) > 0
	for _, name := range []string{"mport", "ts", "iv", "copy"} {
		asked = asked || c.flags.Changed(name)
	}
	if asked && err == nil {
		err = c.client.Close() // another is opened for the rest
	}
	return !asked, c.failed("DB::tune_replication", err)
}
