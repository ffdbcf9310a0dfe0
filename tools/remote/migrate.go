package remote

import (
	"context"
	"errors"
	"math"
	"time"

	"gotycoon/client"
)

// migrate moves databases to another server while they are in use.
func migrate(ctx context.Context, c *call) error {
	m := &migration{copier: &copier{writer: &writer{call: c}, file: new(migrationFile)}, follower: &follower{call: c}}
	f := c.flags
	f.StringVar(&m.file.path, "pos", "", "keep the position in this `file`; a run that finds it goes on from there (default FROM-TO.migrate)")
	f.StringVar(&m.ts, "ts", "", "copy nothing: the target has everything up to this `time stamp` of FROM's log")
	limit := f.Bytes("limit", 0, "write records of at most this `size` a second, 20m for example (default: no limit)")
	f.BoolVar(&m.clear, "clear", false, "remove what the target's databases have first")
	f.BoolVar(&m.merge, "merge", false, "let the target's databases keep records that FROM does not have")
	f.BoolVar(&m.once, "once", false, "copy and verify, without the log: for a server that nobody writes to")
	f.BoolVar(&m.switches, "switch", false, "lead through the switch: make FROM read-only if it can be, wait until the target has everything, verify, and end")
	quiet := f.Seconds("quiet", 5*time.Second, "-switch: nobody writes to FROM any more when it has had no update for so many seconds (default 5)")
	near := f.Seconds("lag", 3*time.Second, "the target has caught up when it is at most so many seconds behind; an original's log is always read one second late (default 3)")
	f.StringVar(&m.verify, "verify", verifyAll, "`how` to compare the records in the end, with -switch and -once: all, none, or about so many of each database")
	m.follower.sid = f.Integer("sid", noServer, "leave out the updates of the server with this ID (default 65535: of none)")
	m.follower.accept = f.Bool("gap-continue", false, "go on, with a warning, when FROM's log no longer has all updates (default: exit code 1)")
	to := identity{f.CredentialsFor("to-", "TO"), f.TLSFilesFor("to-", "TO")}
	if err := c.parse(2, -1); err != nil {
		return err
	}
	if err := to.read(c); err != nil {
		return err
	}
	m.to = to
	m.quiet, m.near, m.limit = *quiet, *near, *limit
	if err := m.check(); err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	return m.run(ctx)
}

// check finds options that make no sense together.
func (m *migration) check() error {
	switch {
	case m.clear && m.merge:
		return usageError("-clear and -merge are opposites")
	case m.once && (m.switches || m.ts != ""):
		return usageError("-once goes neither with -switch nor with -ts, which need the log")
	case m.quiet < 0:
		return usageError("-quiet: must not be negative")
	case m.near < 0:
		return usageError("-lag: must not be negative")
	case m.ts != "" && m.clear:
		return usageError("-ts copies nothing, so -clear would leave an empty database")
	case m.verify != verifyAll && m.verify != verifyNone && m.some() < 1:
		return usageError("-verify: must be all, none, or a number of records")
	case *m.follower.sid < 0 || *m.follower.sid > math.MaxUint16:
		return usageError("-sid: must be 0 to 65535")
	case m.limit < 0:
		return usageError("-limit: must not be negative")
	}
	if m.ts == "" {
		return nil
	}
	_, err := parseStamp(m.ts)
	return err
}

func (m *migration) run(ctx context.Context) (err error) {
	if m.source, err = m.endpoint(m.args[0]); err != nil {
		return err
	}
	defer m.source.close()
	if m.target, err = m.endpointAs(m.args[1], m.to); err != nil {
		return err
	}
	defer m.target.close()
	for _, e := range []endpoint{m.source, m.target} {
		if err := e.connect(ctx); err != nil {
			return err
		}
	}
	if err := m.prepare(ctx); err != nil {
		return err
	}
	err = m.copyAll(ctx, m.lanes)
	if err == nil && m.once {
		err = m.finishOnce(ctx)
	} else if err == nil {
		err = m.follow(ctx)
	}
	return m.interrupted(ctx, err)
}

// exitInterrupted is the exit code of a run that a signal has ended before its end, as shells tell
// it of a command that Ctrl-C ends.
const exitInterrupted = exitStatus(130)

// interrupted tells a person who has ended the run what was kept, and what to do next.
func (m *migration) interrupted(ctx context.Context, err error) error {
	if m.done || ctx.Err() == nil || err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, client.ErrNetwork) {
		return err
	}
	next := "the same command goes on from %[2]s"
	if !m.once && !m.switches {
		next += ", and with -switch it leads through the switch"
	}
	m.tell("ended before the switch: clients stay with %[1]s; "+next, m.source.name, m.file.path)
	return exitInterrupted
}
