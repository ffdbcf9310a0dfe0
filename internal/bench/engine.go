//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"gotycoon/db/engine/pg"
	"gotycoon/internal/pgserver"
)

const (
	engineClients = 64
	// What is compared runs in turns. The best of them count: other work on the machine has
	// disturbed those least.
	engineTurns = 3
)

// increment is the operation that has to read first.
var increment = operation{"increment: POST /rpc/increment", "", `
	local unused = %d
	request = function() return wrk.format("POST", "/rpc/increment?key=n" .. math.random(%d) .. "&num=1") end`}

// What pgbench does for a request: the usual statements for it, without a log.
const (
	chosenKey    = "\\set k random(1, 100000)\n"
	pgbenchKey   = "('key' || :k::int)::bytea"
	pgbenchPlain = `CREATE TABLE plain (k bytea PRIMARY KEY, v bytea NOT NULL) WITH (fillfactor = 80);
		INSERT INTO plain SELECT ('key' || n)::bytea, repeat('x', 100)::bytea FROM generate_series(1, 100000) n;
		VACUUM ANALYZE plain;`
	pgbenchUpsert = chosenKey + "INSERT INTO plain VALUES (" + pgbenchKey +
		", repeat('x', 100)::bytea) ON CONFLICT (k) DO UPDATE SET v = excluded.v;"
	pgbenchSelect = chosenKey + "SELECT v FROM plain WHERE k = " + pgbenchKey + ";"
	pgbenchAdd    = chosenKey + "BEGIN;\nSELECT v FROM plain WHERE k = " + pgbenchKey +
		" FOR UPDATE;\nUPDATE plain SET v = repeat('y', 100)::bytea WHERE k = " + pgbenchKey + ";\nCOMMIT;"
)

// engine measures HTTP with the databases in PostgreSQL beside pgbench, which does for each request
// what an application without gotycoon would do; and then what two servers more are worth where a
// commit takes 5 ms. PostgreSQL writes everything to the disk before it answers. Its autovacuum is
// off: it would count for whoever comes after.
func (b *bench) engine() error {
	dir, err := os.MkdirTemp("", "bench-pg-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := pgserver.Create(dir, pgserver.Options{Settings: []string{
		"shared_buffers = 256MB", "max_wal_size = 1GB", "max_connections = 200", "autovacuum = off",
	}})
	if err != nil {
		return err
	}
	if err := db.Start(); err != nil {
		return err
	}
	defer func() { _ = db.Stop() }() // its files are removed
	url := db.URL("postgres")
	if _, err := pg.Init(context.Background(), url, pg.Setup{SID: 1, Log: true, Databases: []string{"a"}}); err != nil {
		return err
	}
	e := &engineBench{bench: b, db: db, url: url}
	if err := e.once(pgbenchPlain); err != nil {
		return err
	}
	return errors.Join(e.requests(), e.servers())
}

// engineBench is a PostgreSQL that is measured.
type engineBench struct {
	*bench
	db  *pgserver.Server
	url string
}

func (e *engineBench) start() (*process, error) {
	return start(e.server, "-port", "$PORT", "-le", "-pldb", e.url)
}

// engineLoad is the rate of a load, and the processor time for one of it.
type engineLoad struct {
	rate           float64
	engine, server time.Duration
}

// requests compares requests of 64 connections.
func (e *engineBench) requests() error {
	e.table("Databases in PostgreSQL, fsync on, 64 connections, requests/s", "request", "pgbench -M simple", "-M prepared", "gotycoon", "of simple",
		"of prepared", "PostgreSQL's CPU, µs: simple", "prepared", "gotycoon", "part of simple's", "of prepared's", "server's CPU, µs")
	p, err := e.start()
	if err != nil {
		return err
	}
	defer p.stop() // a measurement's end
	for _, op := range []operation{forAll(`"PUT", "/key" .. n, nil, "1"`), forAll(`"POST", "/rpc/increment?num=1&key=n" .. n`)} {
		if _, err := e.wrk(p, op, engineClients); err != nil {
			return err
		}
	}
	for _, r := range []struct {
		op     operation
		script string
	}{{set, pgbenchUpsert}, {get, pgbenchSelect}, {increment, pgbenchAdd}} {
		var simple, prepared, ours engineLoad
		for range engineTurns {
			for _, l := range []struct {
				best *engineLoad
				run  func() (float64, error)
			}{
				{&simple, func() (float64, error) { return e.pgbench(r.script, "simple") }},
				{&prepared, func() (float64, error) { return e.pgbench(r.script, "prepared") }},
				{&ours, func() (float64, error) { return e.wrk(p, r.op, engineClients) }},
			} {
				now, err := e.measure(p, l.run)
				if err != nil {
					return err
				}
				l.best.take(now)
			}
		}
		part := func(of engineLoad) string { return fmt.Sprintf("1/%.1f", float64(of.engine)/float64(ours.engine)) }
		e.row(r.op.name, simple.rate, prepared.rate, ours.rate, ratio(ours.rate/simple.rate), ratio(ours.rate/prepared.rate),
			micros(simple.engine), micros(prepared.engine), micros(ours.engine), part(simple), part(prepared), micros(ours.server))
	}
	return nil
}

// forAll is an operation on the records of a measurement, one after the other.
func forAll(format string) operation {
	return operation{"", "", `
		local n, unused, keys = 0, %d, %d
		request = function() n = n %% keys + 1; return wrk.format(` + format + `) end`}
}

func micros(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Nanoseconds())/1000) }

// take keeps the better of two measurements of a load.
func (l *engineLoad) take(now engineLoad) {
	if l.rate == 0 {
		*l = now
	}
	*l = engineLoad{max(l.rate, now.rate), min(l.engine, now.engine), min(l.server, now.server)}
}

// measure takes the rate of a load and the processor time of the engine and the server. It begins
// behind a checkpoint, as far from the next one as the others.
func (e *engineBench) measure(p *process, run func() (float64, error)) (l engineLoad, err error) {
	if err := e.once("CHECKPOINT;"); err != nil {
		return l, err
	}
	used := func() (engine, server time.Duration, err error) {
		if engine, err = e.db.CPU(); err == nil {
			server, err = p.cpu()
		}
		return engine, server, err
	}
	engine, server, err := used()
	if err != nil {
		return l, err
	}
	if l.rate, err = run(); err != nil {
		return l, err
	}
	engineAfter, serverAfter, err := used()
	done := l.rate * e.length.Seconds()
	l.engine, l.server = time.Duration(float64(engineAfter-engine)/done), time.Duration(float64(serverAfter-server)/done)
	return l, err
}

var pgbenchRate = regexp.MustCompile(`tps = ([0-9.]+)`)

// pgbench runs a script over 64 connections, and returns how often in a second.
func (e *engineBench) pgbench(script, mode string) (float64, error) {
	return e.script(script, "-M", mode, "-c", strconv.Itoa(engineClients), "-T", strconv.Itoa(int(e.length.Seconds())))
}

// once runs statements.
func (e *engineBench) once(script string) error {
	_, err := e.script(script, "-t", "1")
	return err
}

func (e *engineBench) script(script string, args ...string) (float64, error) {
	file := filepath.Join(e.db.Dir(), "script.sql")
	if err := os.WriteFile(file, []byte(script+"\n"), 0o600); err != nil {
		return 0, err
	}
	out, err := exec.Command(filepath.Join(pgserver.Find(), "pgbench"), append(args, "-n", "-f", file, e.url)...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	return number(pgbenchRate, string(out))
}

// servers compares one server with three, each with its own clients, where each commit takes 5 ms.
func (e *engineBench) servers() error {
	e.table("Sets where a commit takes 5 ms, 64 connections for each server, requests/s", "servers", "sets/s", "of one")
	if err := e.db.Configure("commit_delay = 5000", "commit_siblings = 0"); err != nil {
		return err
	}
	var all []*process
	for range 3 {
		p, err := e.start()
		if err != nil {
			return err
		}
		defer p.stop() // a measurement's end
		all = append(all, p)
	}
	alone := 0.0
	for _, n := range []int{1, 2, 3} {
		rates, errs := make([]float64, n), make([]error, n)
		var work sync.WaitGroup
		for i, p := range all[:n] {
			work.Go(func() { rates[i], errs[i] = e.wrk(p, set, engineClients) })
		}
		work.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		sum := 0.0
		for _, r := range rates {
			sum += r
		}
		if n == 1 {
			alone = sum
		}
		e.row(n, sum, ratio(sum/alone))
	}
	return nil
}
