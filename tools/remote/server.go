package remote

import (
	"context"
	"strconv"

	"gotycoon/client"
)

// script calls a script procedure.
func script(ctx context.Context, c *call) error {
	c.withJSON().withSignals()
	binary := c.flags.Bool("bin", false, "use the binary protocol")
	if err := c.parse(1, -1); err != nil {
		return err
	}
	name, params := c.args[0], pairs(c.args[1:])
	if len(c.args)%2 == 0 {
		return errUsage
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	var rows client.Rows
	if *binary {
		rows, err = c.client.PlayScriptBinary(ctx, name, params)
		err = c.failed("DB::play_script_binary", err)
	} else {
		rows, err = db.PlayScript(ctx, name, params)
		err = c.failed("DB::play_script", err)
	}
	if err != nil {
		return err
	}
	return c.printRows(rows, "\t")
}

// tuneReplication points the server to another master, or to none.
func tuneReplication(ctx context.Context, c *call) error {
	port := c.flags.Integer("mport", 1978, "port of the master (default 1978)")
	ts := c.flags.String("ts", "", "`time stamp` to begin after, or \"now\" (default: where the server is)")
	iv := c.flags.String("iv", "", "pause after each update in `milliseconds`")
	if err := c.parse(0, 1); err != nil {
		return err
	}
	if _, err := c.open(ctx); err != nil {
		return err
	}
	var params []string
	if len(c.args) > 0 {
		params = append(params, "host", c.args[0], "port", strconv.FormatInt(*port, 10))
	}
	if *ts != "" && *ts != "-" {
		params = append(params, "ts", *ts)
	}
	if *iv != "" {
		params = append(params, "iv", *iv)
	}
	return c.failed("DB::tune_replication", c.client.TuneReplication(ctx, params...))
}
