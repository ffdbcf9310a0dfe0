// Command runcluster is for who tries servers that share their databases without having an engine
// yet: it runs a PostgreSQL of its own and three servers over it, until it is interrupted. The data
// stay in its directory, and the next run finds them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"gotycoon/db/engine/pg"
	"gotycoon/internal/pgserver"
)

// options of a run.
type options struct {
	dir     string // of the data
	program string // the path of ktserver
	port    int    // of the first server; the others have the next ones
	console int    // of the first server's console
}

// servers is how many servers there are.
const servers = 3

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "data/cluster", "keep PostgreSQL's data, and the logs of the servers, in this `directory`")
	flag.StringVar(&o.program, "server", "bin/ktserver", "run this `program`")
	flag.IntVar(&o.port, "port", 1978, "the `port` of the first server; the others have the next ones")
	flag.IntVar(&o.console, "console", 1990, "the `port` of the console, which is the first server's")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "runcluster:", err)
		stop()
		os.Exit(1)
	}
}

// run runs everything until ctx ends. The servers end before their engine.
func run(ctx context.Context, o options, out io.Writer) (failed error) {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	engine, err := pgserver.Create(filepath.Join(o.dir, "postgresql"), pgserver.Options{Apart: true, Guarded: true})
	if err == nil {
		fmt.Fprintln(out, "Starting a PostgreSQL and three servers.")
		err = engine.Start()
	}
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() == 0 {
		err = fmt.Errorf("%w\nPostgreSQL does not run as root, so its own user must be able to get to %s", err, o.dir)
	}
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, engine.Stop()) }()
	if err := engine.Run("postgres", "REVOKE ALL ON DATABASE postgres FROM PUBLIC"); err != nil { // else servers warn of it
		return err
	}
	url := engine.URL("postgres")
	if _, err := pg.Init(ctx, url, pg.Setup{SID: 1, Log: true, Databases: []string{"casket"}}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all []*server
	defer func() {
		for _, s := range all {
			failed = errors.Join(failed, s.stop())
		}
	}()
	for i := range servers {
		s, err := start(o, url, i, cancel) // who ends by itself ends the others
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	for _, s := range all {
		s.await(ctx)
	}
	if ctx.Err() == nil {
		fmt.Fprintf(out, invitation, o.port, o.port+1, o.port+2, o.console, url, o.dir)
	}
	<-ctx.Done()
	fmt.Fprintln(out, "Ending the servers, then PostgreSQL.")
	return nil
}

const invitation = `Three servers share the records of one PostgreSQL:
  http://localhost:%[1]d  http://localhost:%[2]d  http://localhost:%[3]d
Set a record at one, get it at another, count at the third. In another terminal:
  curl -X PUT -d hello http://localhost:%[1]d/greeting
  curl http://localhost:%[2]d/greeting
  curl 'http://localhost:%[3]d/rpc/increment?key=visits&num=1'
and in a browser: http://localhost:%[4]d/
PostgreSQL: psql '%[5]s'. Logs and data are in %[6]s.
Ctrl-C ends all. The next run has the records again.
`
