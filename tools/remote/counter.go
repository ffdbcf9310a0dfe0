package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"gotycoon/client"
	"gotycoon/tools/show"
)

// counterCall is one run of counter.
type counterCall struct {
	*call
	wait     *time.Duration // -wait
	counters *client.Counters
}

// counterCommand is a row of the table of calls.
type counterCommand struct {
	name, args string
	least      int // fewest arguments behind the name
	most       int // -1 means any number
	run        func(*counterCall, context.Context) error
}

func counterCommands() []counterCommand {
	return []counterCommand{
		{"get", "name", 1, 1, (*counterCall).get},
		{"acquire", "name n maximum -- command ...", 5, -1, (*counterCall).acquire},
		{"release", "name n", 2, 2, (*counterCall).release},
		{"stats", "", 0, 0, (*counterCall).stats},
		{"dump", "", 0, 0, (*counterCall).dump},
	}
}

// counter makes a call of a counter server.
func counter(ctx context.Context, c *call) error {
	*c.port = client.DefaultCounterPort
	c.flags.Lookup("port").Usage = fmt.Sprintf("port of the counter server (default %d)", client.DefaultCounterPort)
	cc := &counterCall{call: c.withJSON()}
	cc.wait = c.flags.Seconds("wait", 0, "acquire: wait for the resources at most so many seconds (default: do not wait)")
	if err := c.parse(1, -1); err != nil {
		return err
	}
	for _, cmd := range counterCommands() {
		switch n := len(c.args) - 1; {
		case cmd.name != c.args[0]:
		case n < cmd.least || cmd.most >= 0 && n > cmd.most || cmd.most < 0 && c.args[4] != "--":
			return usageError("counter " + cmd.name + " " + cmd.args)
		default:
			return cc.on(ctx, cmd)
		}
	}
	return usageError(c.args[0] + ": unknown call; there are get, acquire, release, stats and dump")
}

// on opens a connection and makes the call.
func (c *counterCall) on(ctx context.Context, cmd counterCommand) (err error) {
	addr, o, err := c.server()
	if err != nil {
		return err
	}
	if c.counters, err = client.DialCounters(ctx, addr, o); err != nil {
		return fmt.Errorf("counter server %s: %w", addr, err)
	}
	defer c.counters.Close()
	return cmd.run(c, ctx)
}

// name returns the name of the counter.
func (c *counterCall) name() string { return c.args[1] }

// number reads an argument that is an amount of resources.
func (c *counterCall) number(i int) (uint32, error) {
	n, err := strconv.ParseUint(c.args[i], 10, 32)
	if err != nil {
		return 0, usageError(c.args[i] + " is no amount: it must be a whole number up to 4294967295")
	}
	return uint32(n), nil
}

// get prints how many resources of a counter are acquired.
func (c *counterCall) get(ctx context.Context) error {
	n, err := c.counters.Get(ctx, c.name())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, n)
	return err
}

// acquire holds resources while a command runs.
func (c *counterCall) acquire(ctx context.Context) error {
	n, err := c.number(2)
	if err != nil {
		return err
	}
	maximum, err := c.number(3)
	if err != nil {
		return err
	}
	if err := c.take(ctx, n, maximum); errors.Is(err, client.ErrNotAvailable) {
		return c.exits(exitNotGranted, err)
	} else if err != nil {
		return err
	}
	h := holder{call: c.call, alive: c.counters.Noop}
	err = h.run(ctx, c.args[5:])
	if lost, ok := errors.AsType[*lostError](err); ok {
		return c.exits(exitLost, lost)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdLimit)
	defer cancel()
	_ = c.counters.Release(ending, c.name(), n) // on an error the end of the connection releases
	return err
}

func (c *counterCall) take(ctx context.Context, n, maximum uint32) error {
	if *c.wait <= 0 {
		return c.counters.Acquire(ctx, c.name(), n, maximum)
	}
	waiting, cancel := context.WithTimeout(ctx, *c.wait)
	defer cancel()
	err := c.counters.AcquireWait(waiting, c.name(), n, maximum)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%w within %v", client.ErrNotAvailable, *c.wait)
	}
	return err
}

// release asks to give resources back. This connection has acquired none, so the command shows how
// the server refuses.
func (c *counterCall) release(ctx context.Context) error {
	n, err := c.number(2)
	if err != nil {
		return err
	}
	return c.counters.Release(ctx, c.name(), n)
}

// stats prints the server's statistics.
func (c *counterCall) stats(ctx context.Context) error {
	stats, err := c.counters.Stats(ctx)
	if err != nil {
		return err
	}
	rows := client.Rows{}
	for _, s := range stats {
		rows[s.Name] = []byte(s.Value)
		if !c.json {
			fmt.Fprintf(c.out, "%s: %s\n", s.Name, s.Value) // Flush returns the error
		}
	}
	if c.json {
		return c.printJSON(status(rows))
	}
	return nil
}

// dump prints all counters, sorted by name: the resources in use, and the most that were in use in
// the server's current interval. An error of the output comes back from Flush.
func (c *counterCall) dump(ctx context.Context) error {
	var all []client.CounterEntry
	for e, err := range c.counters.Dump(ctx) {
		if err != nil {
			return err
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b client.CounterEntry) int { return cmp.Compare(a.Name, b.Name) })
	for _, e := range all {
		if !c.json {
			fmt.Fprintf(c.out, "%s\t%d\t%d\n", e.Name, e.Current, e.Maximum)
			continue
		}
		o := show.Object{"current": e.Current, "maximum": e.Maximum}
		o.Bytes("name", []byte(e.Name), c.hexOut)
		if err := c.printJSON(o); err != nil {
			return err
		}
	}
	return nil
}
