package remote

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"gotycoon/client"
	"gotycoon/tools/show"
)

// seq prints sequence numbers, or explains a number.
func seq(ctx context.Context, c *call) error {
	name := c.flags.String("name", "", "`name` of the sequence (default: the one without a name)")
	count := c.flags.Integer("count", 1, "print so many numbers")
	explain := c.flags.Bool("explain", false, "print the parts of the number that follows")
	c.withJSON()
	if err := c.parse(0, 1); err != nil {
		return err
	}
	if *explain != (len(c.args) == 1) {
		return usageError("-explain and a number belong together")
	}
	addr, o, err := c.server()
	if err != nil {
		return err
	}
	server := client.NewSequence(addr, *name, o)
	defer server.Close()
	if *explain {
		text, err := server.Explain(ctx, c.args[0])
		if err != nil {
			return err
		}
		return c.printOne("number", text)
	}
	if *count < 1 {
		return usageError("-count: must be at least 1")
	}
	for left := *count; left > 0; left -= client.MaxFetch {
		if err := c.printNumbers(ctx, server, int(min(left, client.MaxFetch))); err != nil {
			return err
		}
	}
	return nil
}

// printNumbers prints the next n numbers, which are consecutive.
func (c *call) printNumbers(ctx context.Context, server *client.Sequence, n int) error {
	numbers, err := server.Fetch(ctx, n)
	for _, n := range numbers {
		if err := c.printOne("number", n); err != nil {
			return err
		}
	}
	return err
}

// quota makes a call of a quota and prints the reply: the remaining amount, behind the number of
// the journal if the call has made one.
func quota(ctx context.Context, c *call) error {
	name := c.flags.String("name", "", "`name` of the quota (default: the one without a name)")
	id := c.flags.String("id", "", "`name` of this call: repeated under it, it counts once")
	c.withJSON()
	if err := c.parse(1, 2); err != nil {
		return err
	}
	number, err := c.quotaNumber()
	if err != nil {
		return err
	}
	addr, o, err := c.server()
	if err != nil {
		return err
	}
	server := client.NewQuota(addr, *name, o)
	defer server.Close()
	var journal, remaining int64
	switch c.args[0] {
	case "query":
		remaining, err = server.Query(ctx)
	case "apply":
		journal, remaining, err = server.Apply(ctx, number, *id)
	case "cancel":
		journal, remaining, err = server.Cancel(ctx, number, *id)
	case "increase":
		remaining, err = server.Increase(ctx, number, *id)
	case "decrease":
		remaining, err = server.Decrease(ctx, number, *id)
	case "empty":
		err = server.Empty(ctx)
	}
	switch {
	case errors.Is(err, client.ErrQuota) && c.args[0] == "cancel":
		return fmt.Errorf("quota cancel: %w: there is no journal %d of an apply, or it has been cancelled", err, number)
	case errors.Is(err, client.ErrQuota):
		return fmt.Errorf("quota %s: %w: what remains is %d", c.args[0], err, remaining)
	case err != nil:
		return fmt.Errorf("quota %s: %w", c.args[0], err)
	}
	return c.printQuota(journal, remaining)
}

func (c *call) printQuota(journal, remaining int64) error {
	switch {
	case c.json && journal != 0:
		return c.printJSON(show.Object{"journal": journal, "remaining": remaining})
	case c.json:
		return c.printJSON(show.Object{"remaining": remaining})
	case journal != 0:
		fmt.Fprintf(c.out, "%d ", journal) // Flush returns the error
	}
	_, err := fmt.Fprintln(c.out, remaining)
	return err
}

// quotaNumber reads the number that some of the calls need.
func (c *call) quotaNumber() (int64, error) {
	switch c.args[0] {
	case "query", "empty":
		if len(c.args) > 1 {
			return 0, usageError(c.args[0] + " has no argument")
		}
		return 0, nil
	case "apply", "cancel", "increase", "decrease":
		if len(c.args) < 2 {
			return 0, usageError(c.args[0] + " needs a number")
		}
		number, err := strconv.ParseInt(c.args[1], 10, 64)
		if err != nil {
			return 0, usageError(c.args[1] + " is no number")
		}
		return number, nil
	}
	return 0, usageError(c.args[0] + ": unknown call; there are query, apply, cancel, increase, decrease and empty")
}
