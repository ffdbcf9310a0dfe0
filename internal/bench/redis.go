//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	keySpace  = 100_000
	valueSize = 100
)

// kinds are the servers that are measured over HTTP: in memory, and with a file and the update log.
func kinds() []struct {
	name string
	args []string
} {
	return []struct {
		name string
		args []string
	}{
		{"`:`", []string{"-port", "$PORT", "-le", ":"}},
		{"`.kct` with `-ulog`", []string{"-port", "$PORT", "-le", "-ulog", "$DIR/ulog", "-sid", "1", "$DIR/a.kct"}},
	}
}

// http compares 64 keep-alive connections with redis-benchmark -c 64.
func (b *bench) http() error {
	return b.compareRedis("64 connections, no pipelining, values of 100 bytes, requests/s", 64)
}

// oneConnection compares one request at a time.
func (b *bench) oneConnection() error {
	return b.compareRedis("One connection, one request at a time, requests/s", 1)
}

func (b *bench) compareRedis(title string, connections int) error {
	b.table(title, "operation", "database", "gotycoon", "redis", "ratio")
	for _, kind := range kinds() {
		kt, err := start(b.server, append([]string(nil), kind.args...)...)
		if err != nil {
			return err
		}
		defer kt.stop() // a measurement's end
		for _, op := range []operation{set, get} {
			if err := b.compareOne(kt, kind.name, op, connections); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareOne measures redis before and after ktserver, because the machine's speed changes.
func (b *bench) compareOne(kt *process, database string, op operation, connections int) error {
	before, err := b.redis(op, connections)
	if err != nil {
		return err
	}
	ours, err := b.wrk(kt, op, connections)
	if err != nil {
		return err
	}
	after, err := b.redis(op, connections)
	if err != nil {
		return err
	}
	theirs := (before + after) / 2
	b.row(op.name, database, ours, theirs, ratio(ours/theirs))
	return nil
}

// oas compares -oas, where every set is acknowledged after an fsync, with the default mode.
func (b *bench) oas() error {
	b.table("Sets over 64 connections into `.kct` with `-ulog`, requests/s", "mode", "sets", "of default")
	base := []string{"-port", "$PORT", "-le", "-ulog", "$DIR/ulog", "-sid", "1"}
	var normal float64
	for _, mode := range []struct {
		name string
		args []string
	}{
		{"default", nil},
		{"`-oas`", []string{"-oas"}},
	} {
		args := append(append(append([]string(nil), base...), mode.args...), "$DIR/a.kct")
		p, err := start(b.server, args...)
		if err != nil {
			return err
		}
		defer p.stop() // a measurement's end
		rate, err := b.wrk(p, set, 64)
		if err != nil {
			return err
		}
		if normal == 0 {
			normal = rate
		}
		b.row(mode.name, rate, ratio(rate/normal))
	}
	return nil
}

// operation is one kind of request: a script for wrk, and the name of redis-benchmark's test.
type operation struct{ name, redis, script string }

var (
	set = operation{"set: PUT /key", "set", `
		local value = string.rep("x", %d)
		request = function() return wrk.format("PUT", "/key" .. math.random(%d), nil, value) end`}
	get = operation{"get: GET /key", "get", `
		local unused = %d
		request = function() return wrk.format("GET", "/key" .. math.random(%d)) end`}
)

var requestsPerSecond = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)

// wrk loads a ktserver and returns requests per second.
func (b *bench) wrk(p *process, op operation, connections int) (float64, error) {
	return b.wrkScript(p, "http://"+p.addr(), fmt.Sprintf(op.script, valueSize, keySpace), connections)
}

// wrkScript sends the requests that a script makes to a URL, and returns requests per second.
func (b *bench) wrkScript(p *process, url, text string, connections int) (float64, error) {
	script := filepath.Join(p.dir, "wrk.lua")
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		return 0, err
	}
	out, err := exec.Command("wrk", "-t1", "-c"+strconv.Itoa(connections), "-d"+seconds(b.length), "-s", script,
		url).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w: %s", err, out)
	}
	if strings.Contains(string(out), "Socket errors") {
		return 0, fmt.Errorf("wrk: %s", out)
	}
	perSecond, err := number(requestsPerSecond, string(out))
	if m := refusals.FindSubmatch(out); m != nil && err == nil {
		// a few gets find nothing where not every key was stored
		if n, _ := strconv.ParseFloat(string(m[1]), 64); n > perSecond*b.length.Seconds()/2 {
			return 0, fmt.Errorf("wrk: most requests were refused: %s", out)
		}
	}
	return perSecond, err
}

// refusals is how many answers had another status than 2xx or 3xx.
var refusals = regexp.MustCompile(`Non-2xx or 3xx responses: ([0-9]+)`)

var redisRPS = regexp.MustCompile(`(?m)^"[A-Z]+","([0-9.]+)"`)

// redis loads a redis-server with its default configuration and returns requests per second.
func (b *bench) redis(op operation, connections int) (float64, error) {
	p, err := start("redis-server", "--port", "$PORT", "--dir", "$DIR", "--loglevel", "warning")
	if err != nil {
		return 0, err
	}
	defer p.stop() // a measurement's end
	run := func(test string, n int) (float64, error) {
		out, err := exec.Command("redis-benchmark", "-p", p.port, "-c", strconv.Itoa(connections), "-n", strconv.Itoa(n),
			"-d", strconv.Itoa(valueSize), "-r", strconv.Itoa(keySpace), "-t", test, "--csv").CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("redis-benchmark: %w: %s", err, out)
		}
		return number(redisRPS, string(out))
	}
	// The first run fills the database, warms up, and tells how many requests are enough.
	perSecond, err := run("set", 20_000*min(connections, 8))
	if err != nil {
		return 0, err
	}
	return run(op.redis, int(perSecond*b.length.Seconds()))
}

func number(pattern *regexp.Regexp, text string) (float64, error) {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no figure in %q", text)
	}
	return strconv.ParseFloat(m[1], 64)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }
