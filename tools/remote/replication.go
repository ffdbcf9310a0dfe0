package remote

import (
	"context"
	"math"
	"strconv"
	"time"

	"gotycoon/client"
)

// tuneReplication makes the server follow another master, or none.
func tuneReplication(ctx context.Context, c *call) error {
	port := c.flags.Integer("mport", 1978, "port of the master (default 1978)")
	ts := c.flags.String("ts", "", "`time stamp` to begin after, or \"now\" (default: where the server is)")
	copies := c.flags.Bool("copy", false, "replace the server's databases by copies of the master's first")
	var interval time.Duration
	c.flags.Number("iv", func(n float64) { interval = replicateInterval(n) }, "milliseconds between two looks for updates, 0: none")
	role := c.roleOptions()
	if err := c.parse(0, 1); err != nil {
		return err
	}
	if *port < 1 || *port > math.MaxUint16 {
		return usageError("-mport: must be 1 to 65535")
	}
	if only, err := role.set(ctx); only || err != nil {
		return err
	}
	if *copies && len(c.args) == 0 {
		return usageError("-copy needs a master")
	}
	m := client.Master{Interval: interval, Copy: *copies}
	if len(c.args) > 0 {
		m.Host, m.Port = c.args[0], int(*port)
	}
	if *ts != "" && *ts != "-" && *ts != now {
		n, err := parseStamp(*ts)
		if err != nil {
			return err
		}
		m.TS = strconv.FormatUint(n, 10)
	} else if *ts == now {
		m.TS = now
	}
	if _, err := c.open(ctx); err != nil {
		return err
	}
	return c.failed("DB::tune_replication", c.client.TuneReplication(ctx, m))
}

// replicateInterval converts the value of -iv. A value below zero leaves the server's interval
// unchanged.
func replicateInterval(ms float64) time.Duration {
	const longest = 1 << 62
	switch {
	case ms < 0:
		return 0
	case ms == 0:
		return client.NoPause
	}
	return time.Duration(max(1, min(longest, ms*float64(time.Millisecond))))
}

// roleOptions are the options of tunerepl that change the server's own role, whatever its master
// is.
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

// set changes the server's role. only reports whether the command line asks for nothing else.
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
		err = c.client.Close() // the rest opens a connection of its own
	}
	return !asked, c.failed("DB::tune_replication", err)
}
