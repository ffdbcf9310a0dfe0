package remote

import (
	"context"
	"fmt"

	"gotycoon/tools/show"
)

// config prints the options that a running server has in effect, or changes one of them.
func config(ctx context.Context, c *call) error {
	if err := c.withJSON().parse(1, 3); err != nil {
		return err
	}
	switch n := len(c.args); {
	case c.args[0] == "get" && n <= 2:
		return c.getOptions(ctx, append(c.args, "")[1])
	case c.args[0] == "set" && n == 3:
		return c.setOption(ctx, c.args[1], c.args[2])
	}
	return usageError("must be get, get NAME or set NAME VALUE")
}

// getOptions prints all options, a line each, or the value of one.
func (c *call) getOptions(ctx context.Context, name string) error {
	if _, err := c.open(ctx); err != nil {
		return err
	}
	all, err := c.client.Options(ctx, name)
	if err != nil {
		return c.failed("DB::config_get", err)
	}
	for _, o := range all {
		changes := "next start"
		if o.Running {
			changes = "now"
		}
		switch {
		case c.json:
			err = c.printJSON(show.Object{"name": o.Name, "value": o.Value, "source": o.Source, "running": o.Running, "secret": o.Secret})
		case name != "":
			_, err = fmt.Fprintln(c.out, o.Value)
		case o.Secret:
			_, err = fmt.Fprintf(c.out, "%s\t(secret)\t%s\t%s\n", o.Name, o.Source, changes)
		default:
			_, err = fmt.Fprintf(c.out, "%s\t%s\t%s\t%s\n", o.Name, o.Value, o.Source, changes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setOption changes an option, and says whether the change outlives the process.
func (c *call) setOption(ctx context.Context, name, value string) error {
	if _, err := c.open(ctx); err != nil {
		return err
	}
	lasts, err := c.client.SetOption(ctx, name, value)
	if err != nil {
		return c.failed("DB::config_set", err)
	}
	if c.json {
		return c.printOne("lasts", lasts)
	}
	kept := "after the next start: " + lasts
	if lasts == "yes" {
		kept = "after the next start too"
	}
	_, err = fmt.Fprintf(c.out, "%s is %s now; %s\n", name, value, kept)
	return err
}
