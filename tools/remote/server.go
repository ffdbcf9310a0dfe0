package remote

import (
	"context"
	"fmt"
	"maps"
	"math"
	"time"
)

// report prints the server's report.
func report(ctx context.Context, c *call) error {
	if err := c.withJSON().parse(0, 0); err != nil {
		return err
	}
	if _, err := c.open(ctx); err != nil {
		return err
	}
	rows, err := c.client.Report(ctx)
	if err != nil {
		return c.failed("DB::report", err)
	}
	return c.printStatus(rows)
}

// listReplicas prints the servers that replicate from the server.
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

// waitReplicas waits until enough followers of the server have what was written until now, and
// prints how many have it.
func waitReplicas(ctx context.Context, c *call) error {
	n := c.flags.Integer("n", 0, "so many followers (default: as many as the server's -sync-replicas says, at least 1)")
	ts := c.flags.String("ts", "", "what was written up to this `time stamp` of the server's update log (default: until now)")
	limit := c.flags.Seconds("time", 5*time.Second, "wait so many seconds at most (default 5)")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	switch {
	case *n < 0 || *n > math.MaxInt32:
		return usageError("-n: must be a number of followers")
	case *limit < 0:
		return usageError("-time: must not be negative")
	}
	at := uint64(0)
	if *ts != "" {
		var err error
		if at, err = parseStamp(*ts); err != nil {
			return err
		}
	}
	if _, err := c.open(ctx); err != nil {
		return err
	}
	have, err := c.client.WaitReplicas(ctx, int(*n), at, *limit)
	if err != nil {
		return c.failed("DB::wait_replicas", err)
	}
	fmt.Fprintln(c.out, have)
	return nil
}

// inform prints the number and the size of the records, or with -st the whole status of a database.
func inform(ctx context.Context, c *call) error {
	all := c.withDB().withSignals().withJSON().flags.Bool("st", false, "print everything about the database")
	db, err := c.parseAndOpen(ctx, 0, 0)
	if err != nil {
		return err
	}
	rows, err := db.Status(ctx)
	if err != nil {
		return c.failed("DB::status", err)
	}
	if !*all {
		maps.DeleteFunc(rows, func(name string, _ []byte) bool { return name != "count" && name != "size" })
	}
	return c.printStatus(rows)
}

// clearRecords removes all records of a database.
func clearRecords(ctx context.Context, c *call) error {
	if err := c.withDB().withSignals().parse(0, 0); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	return c.failed("DB::clear", db.Clear(ctx))
}

// synchronize makes the server write a database to its file, and run a command on the file with
// -cmd.
func synchronize(ctx context.Context, c *call) error {
	c.withDB().withSignals()
	hard := c.flags.Bool("hard", false, "down to the disk")
	command := c.flags.String("cmd", "", "then run this `command` of the server's -cmd directory with the file's path and a time stamp")
	db, err := c.parseAndOpen(ctx, 0, 0)
	if err != nil {
		return err
	}
	return c.failed("DB::synchronize", db.Synchronize(ctx, *hard, *command))
}

// vacuum removes expired records.
func vacuum(ctx context.Context, c *call) error {
	step := c.withDB().withSignals().flags.Integer("step", 0, "look at so many records only")
	db, err := c.parseAndOpen(ctx, 0, 0)
	if err != nil {
		return err
	}
	return c.failed("DB::vacuum", db.Vacuum(ctx, *step))
}

// compact has the server compact the file of a database, and waits for the end.
func compact(ctx context.Context, c *call) error {
	c.withDB().withSignals()
	background := c.flags.Bool("bg", false, "do not wait for the end; inform -st tells how far it is")
	abort := c.flags.Bool("abort", false, "end the compaction under way; the file stays as it is")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	if *background && *abort {
		return usageError("-bg begins a compaction, and -abort ends one")
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	const name = "DB::compact"
	if *abort {
		return c.failed(name, db.AbortCompact(ctx))
	}
	if *background {
		_, err := db.BeginCompact(ctx)
		return c.failed(name, err)
	}
	st, err := db.Compact(ctx)
	if err != nil {
		return c.failed(name, err)
	}
	fmt.Fprintf(c.out, "%d bytes, %d before\n", st.After, st.Before)
	return nil
}

// script calls a script procedure and prints the records that it returns.
func script(ctx context.Context, c *call) error {
	c.withJSON().withSignals()
	binary := c.flags.Bool("bin", false, "use the binary protocol")
	if err := c.parse(1, -1); err != nil {
		return err
	}
	if len(c.args)%2 == 0 {
		return usageError("the last key has no value")
	}
	db, err := c.openFor(ctx, *binary)
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

// pairs makes a map of alternating keys and values.
func pairs(args []string) map[string][]byte {
	m := make(map[string][]byte, len(args)/2)
	for i := 0; i+1 < len(args); i += 2 {
		m[args[i]] = []byte(args[i+1])
	}
	return m
}
