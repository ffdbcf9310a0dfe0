package remote

import (
	"context"
	"strconv"
	"time"

	"gotycoon/client"
)

// script calls a script procedure.
func script(ctx context.Context, c *call) error {
	c.withJSON().withSignals()
	binary := c.flags.Bool("bin", false, "use the binary protocol")
	if err := c.parse(1, -1); err != nil {
		return err
	}
	if len(c.args)%2 == 0 {
		return usageError("the last key has no value")
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	name, play := "DB::play_script", db.PlayScript
	if *binary {
		name, play = "DB::play_script_binary", c.client.PlayScriptBinary
	}
	rows, err := play(ctx, c.args[0], pairs(c.args[1:]))
	if err != nil {
		return c.failed(name, err)
	}
	return c.printRecords(rows)
}

// tuneReplication points the server to another master, or to none.
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

// replicateInterval is the value of -iv. Below zero means unchanged, as it does for the server.
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
