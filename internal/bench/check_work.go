//go:build linux

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

const (
	checkKeys     = 200_000
	checkRequests = 40_000
	checkRecords  = 400_000 // in bulks
)

// workload is one row of the recorded table.
type workload struct {
	name   string
	server string // kind of server, "" for a benchmark of a package
	load   func(p *process) (operations int, err error)

	tests, pattern string // package and name of the benchmark
	times          int
}

// workloads are the rows of the recorded table. After a change here the table must be recorded
// anew.
func workloads() []workload {
	keys := ladderKeys(checkKeys)
	return []workload{
		{name: "HTTP set, :", server: "memory", load: requests(httpSet(keys), 0)},
		{name: "HTTP get, :", server: "memory", load: requests(httpGet(keys), 0)},
		{name: "memcached get, :", server: "memory", load: requests(memcachedGet(keys), 1)},
		{name: "bulk set, :", server: "memory", load: storeBulks},
		{name: "bulk get, :", server: "memory", load: readBulks},
		{name: "HTTP set, .kct with log", server: "file", load: requests(httpSet(keys), 0)},
		{name: "HTTP get, .kct with log", server: "file", load: requests(httpGet(keys), 0)},
		{name: "bulk set, .kct with log", server: "file", load: storeBulks},
		{name: "bulk get, .kct with log", server: "file", load: readBulks},
		{name: "lock and release", server: "lock", load: requests(lockTurns(), 1)},
		{name: "Go: HTTP get without socket", tests: "httpapi", pattern: "^BenchmarkServeOne$/^plain$/^rest-get$", times: 2_000_000},
		{name: "Go: record into the log", tests: "ulog", pattern: "^BenchmarkAppend$", times: 2_000_000},
	}
}

// checkServer is a kind of server that workloads share in a round.
type checkServer struct {
	name string
	args []string
	fill bool
}

func checkServers() []checkServer {
	return []checkServer{
		{name: "memory", fill: true, args: []string{"-port", "$PORT", "-le", "-memcache-port", "$PORT1", ":"}},
		// A small overlay, so that several checkpoints are in each figure.
		{name: "file", fill: true, args: []string{"-port", "$PORT", "-le", "-ulog", "$DIR/ulog", "-sid", "1", "-checkpoint", "16m", "$DIR/a.kct"}},
		{name: "lock", args: []string{"-port", "$PORT", "-le", "-ulog", "$DIR/ulog", "-sid", "1", "-services", "$DIR/services.kct", "-lock-port", "$PORT1", ":"}},
		{name: ""},
	}
}

func (s checkServer) start(server string) (*process, error) {
	p, err := start(server, s.args...)
	if err != nil || !s.fill {
		return p, err
	}
	var done atomic.Int64
	if _, err = bulkLoad(p.addr(), checkKeys, fillSeq, &done, eachOnce); err == nil {
		err = p.idle()
	}
	if err != nil {
		_ = p.stop() // the first error is returned
		return nil, err
	}
	return p, nil
}

// run takes a workload and returns the processor time of an operation, with what the server does
// afterwards.
func (w workload) run(p *process, dir string) (time.Duration, error) {
	if w.tests != "" {
		return w.runTests(dir)
	}
	before, err := p.cpu()
	if err != nil {
		return 0, err
	}
	n, err := w.load(p)
	if err != nil {
		return 0, err
	}
	if err := p.idle(); err != nil {
		return 0, err
	}
	after, err := p.cpu()
	return (after - before) / time.Duration(n), err
}

// requests sends single requests over 64 connections to the server's port, or $PORT1.
func requests(protocol protocol, port int) func(p *process) (int, error) {
	return func(p *process) (int, error) {
		v := &volley{addr: p.further(port), protocol: protocol, conns: 64, count: checkRequests}
		r, err := v.run()
		if err != nil {
			return 0, err
		}
		return r.count, nil
	}
}

func storeBulks(p *process) (int, error) {
	var done atomic.Int64
	_, err := bulkLoad(p.addr(), checkRecords, updateSeq, &done, anyOf(checkKeys))
	return checkRecords, err
}

// readBulks reads every record twice over one connection.
func readBulks(p *process) (int, error) {
	c, err := dialBulk(p.addr())
	if err != nil {
		return 0, err
	}
	defer c.conn.Close()
	hits := 0
	for first := 0; first < checkRecords; first += bulkSize {
		c.numbers = c.numbers[:0]
		for i := range bulkSize {
			c.numbers = append(c.numbers, uint64((first+i)%checkKeys))
		}
		if err := c.get(func(_, _ []byte) { hits++ }); err != nil {
			return 0, err
		}
	}
	if hits != checkRecords {
		return 0, fmt.Errorf("%d of %d records are there", hits, checkRecords)
	}
	return hits, nil
}

// idle waits until the server takes no processor time worth mentioning.
func (p *process) idle() error {
	const step, little, patience = 100 * time.Millisecond, 3 * time.Millisecond, 20 * time.Second
	last := time.Duration(-patience)
	for begin := time.Now(); ; <-time.After(step) {
		used, err := p.cpu()
		if err != nil {
			return err
		}
		if used-last < little {
			return nil
		}
		last = used
		if time.Since(begin) > patience {
			return fmt.Errorf("%s does not come to rest", p.cmd.Path)
		}
	}
}

// buildTests compiles the tests of a package.
func buildTests(w workload, dir string) error {
	out, err := exec.Command("go", "test", "-c", "-o", testBinary(w, dir), "./"+w.tests).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", w.tests, err, out)
	}
	return nil
}

func testBinary(w workload, dir string) string {
	return filepath.Join(dir, strings.ReplaceAll(w.tests, "/", "-")+".test")
}

// runTests runs a benchmark a fixed number of times and returns the processor time of each, the
// start of the process included.
func (w workload) runTests(dir string) (time.Duration, error) {
	cmd := exec.Command(testBinary(w, dir), "-test.run", "^$", "-test.bench", w.pattern, "-test.benchtime", fmt.Sprintf("%dx", w.times), "-test.cpu", "1")
	cmd.Dir = w.tests
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	if !strings.Contains(string(out), "ns/op") {
		return 0, fmt.Errorf("no benchmark %s: %s", w.pattern, out)
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()) / time.Duration(w.times), nil
}
