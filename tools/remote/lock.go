package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gotycoon/client"
	"gotycoon/tools/show"
)

// fenceVariable is the environment variable that tells a command its fencing token.
const fenceVariable = "KT_FENCE"

// lockCall is one run of lock.
type lockCall struct {
	*call
	locks  *client.Locks
	status *bool
	list   *bool
	cancel *string
	wait   *time.Duration
	ttl    *time.Duration
	max    *int64
}

// lock runs a command under a lock, or shows or ends the requests for locks.
func lock(ctx context.Context, c *call) error {
	*c.port = client.DefaultLockPort
	c.flags.Lookup("port").Usage = fmt.Sprintf("port of the lock server (default %d)", client.DefaultLockPort)
	lc := &lockCall{
		call:   c,
		wait:   c.flags.Seconds("wait", -1, "wait for the lock at most so many seconds, 0: not at all (default: for ever); exit code 75"),
		ttl:    c.flags.Seconds("ttl", client.DefaultLockTTL, "the server keeps the lock so many seconds when it does not hear of us (default 30)"),
		max:    c.flags.Integer("max", 1, "so many may hold the lock at the same time (default 1)"),
		status: c.flags.Bool("status", false, "print how many hold and wait for the key"),
		list:   c.flags.Bool("list", false, "print who holds and waits for a key, or for all keys"),
		cancel: c.flags.String("cancel", "", "end the request of the client with this `address`, which -list prints, for the key"),
	}
	c.withJSON()
	if err := c.parse(0, -1); err != nil {
		return err
	}
	addr, o, err := c.server()
	if err != nil {
		return err
	}
	lc.locks = client.NewLocks(addr, o)
	return lc.do(ctx)
}

func (c *lockCall) do(ctx context.Context) error {
	switch n := len(c.args); {
	case *c.list && n <= 1:
		return c.printList(ctx)
	case *c.status && n == 1:
		return c.printStatus(ctx)
	case *c.cancel != "" && n == 1:
		return c.locks.Cancel(ctx, c.args[0], *c.cancel)
	case *c.list || *c.status || *c.cancel != "":
		return usageError("one key, please")
	case n < 3 || c.args[1] != "--":
		return usageError("a key, --, and a command are needed")
	case *c.max < 1 || *c.max > 1<<31-1:
		return usageError("-max: must be at least 1")
	case *c.ttl < time.Second:
		return usageError("-ttl: must be at least 1")
	}
	return c.hold(ctx)
}

// hold runs the command under the lock.
func (c *lockCall) hold(ctx context.Context) error {
	held, err := c.locks.Acquire(ctx, c.args[0], client.LockOptions{TTL: *c.ttl, Wait: *c.wait, Max: int(*c.max)})
	if errors.Is(err, client.ErrLockBusy) {
		return c.exits(exitNotGranted, fmt.Errorf("%s: %w", c.args[0], err))
	}
	if err != nil {
		return err
	}
	h := &holder{
		call:  c.call,
		alive: func(context.Context) error { return held.Err() },
		lost:  held.Lost(),
		env:   []string{fmt.Sprintf("%s=%d", fenceVariable, held.Fence())},
	}
	ran := h.run(ctx, c.args[2:])
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdLimit)
	defer cancel()
	if err := held.Release(ending); errors.Is(err, client.ErrLockLost) {
		return c.exits(exitLost, fmt.Errorf("%s: %w", c.args[0], err))
	}
	return ran // after another error of Release the end of the connection has released the lock
}

func (c *lockCall) printStatus(ctx context.Context) error {
	s, err := c.locks.Status(ctx, c.args[0])
	switch {
	case err != nil:
		return err
	case c.json:
		return c.printJSON(show.Object{"holders": s.Holders, "waiters": s.Waiters})
	}
	_, err = fmt.Fprintf(c.out, "holders: %d\nwaiters: %d\n", s.Holders, s.Waiters)
	return err
}

// printList prints a line for each request, with tabs between the columns: KEY STATE ADDRESS AGE
// LEFT MAX TOKEN.
func (c *lockCall) printList(ctx context.Context) error {
	key := ""
	if len(c.args) == 1 {
		key = c.args[0]
	}
	list, err := c.locks.List(ctx, key)
	for _, e := range list {
		state := "waits"
		if e.Holds {
			state = "holds"
		}
		if c.json {
			if err := c.printJSON(lockObject(e, state)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(c.out, "%s\t%s\t%s\t%.3f\t%.3f\t%d\t%d\n", e.Key, state, e.Address, e.Age.Seconds(), e.Left.Seconds(), e.Max, e.Fence)
	}
	return err
}

// lockObject makes the JSON object of a request. Times are in seconds. A request without "left"
// never ends by itself.
func lockObject(e client.LockEntry, state string) show.Object {
	o := show.Object{"state": state, "address": e.Address, "age": e.Age.Seconds(), "max": e.Max, "fence": e.Fence}
	o.Bytes("key", []byte(e.Key), false)
	if e.Left >= 0 {
		o["left"] = e.Left.Seconds()
	}
	return o
}
