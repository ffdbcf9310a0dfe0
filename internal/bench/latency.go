//go:build linux

package main

import (
	"fmt"
	"time"
)

const (
	latencyConns  = 64
	latencyRounds = 3 // in turns, because the machine's speed changes
)

// latency measures waits over 64 connections beside redis-server: first as fast as each server can,
// then at half of that rate, from the times at which the requests were due (see volley). The rounds
// of a server share a histogram. redis-server keeps no RDB files here: its forks would be in the
// waits, and -ulog has nothing like them.
func (b *bench) latency() error {
	load := fmt.Sprintf("half of what a server can do, from the time that each request was due; %d runs of %s in turns", latencyRounds, b.length)
	if b.rate > 0 {
		load = fmt.Sprintf("at %s requests/s, from the time that each request was due; %d runs of %s in turns", thousands(b.rate), latencyRounds, b.length)
	}
	b.table("Waits over 64 connections, values of 100 bytes, ms: saturated, and "+load, "operation", "server", "load", "requests/s",
		"server CPU, µs/request", "p50", "p90", "p99", "p99.9", "p99.99", "longest", "p99 and p99.9 of redis's", "generator late, p50 and p99")
	for _, pair := range []struct {
		operations []string
		rivals     [2]rival
	}{
		{[]string{"set", "get"}, [2]rival{b.ourRival("`:`", ":"), redisRival("redis, `appendonly no`", "no", "no")}},
		{[]string{"set", "get"}, [2]rival{b.ourRival("`.kct` with `-ulog`", "-ulog", "$DIR/ulog", "-sid", "1", "$DIR/a.kct"),
			redisRival("redis, `appendfsync everysec`", "yes", "everysec")}},
		{[]string{"set"}, [2]rival{b.ourRival("`.kct` with `-ulog -oas`", "-ulog", "$DIR/ulog", "-sid", "1", "-oas", "$DIR/a.kct"),
			redisRival("redis, `appendfsync always`", "yes", "always")}},
	} {
		if err := b.latencyPair(pair.operations, pair.rivals); err != nil {
			return err
		}
	}
	return nil
}

// rival is a server whose waits are compared.
type rival struct {
	name, bin string
	args      []string
	set, get  protocol
	process   *process
}

func (b *bench) ourRival(name string, args ...string) rival {
	return rival{name: name, bin: b.server, set: httpSet(smallKeys), get: httpGet(smallKeys), args: append([]string{"-port", "$PORT", "-le"}, args...)}
}

func redisRival(name, appendonly, appendfsync string) rival {
	return rival{name: name, bin: "redis-server", set: redisSet(), get: redisGet(), args: []string{"--port", "$PORT", "--dir", "$DIR",
		"--loglevel", "warning", "--save", "", "--appendonly", appendonly, "--appendfsync", appendfsync}}
}

func (b *bench) latencyPair(operations []string, pair [2]rival) error {
	for i := range pair {
		r := &pair[i]
		p, err := start(r.bin, r.args...)
		if err != nil {
			return err
		}
		defer p.stop() // a measurement's end
		r.process = p
		if err := fillSmall(p.addr(), r.set); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	for _, op := range operations {
		if err := b.latencyRows(op, pair); err != nil {
			return err
		}
	}
	return nil
}

// latencyRows prints four rows: both servers saturated, and both at their rates.
func (b *bench) latencyRows(op string, pair [2]rival) error {
	var saturated, paced [2]volleyResult
	for round := range latencyRounds {
		for turn := range pair {
			i := (round + turn) % 2
			v := &volley{addr: pair[i].process.addr(), protocol: pair[i].set, conns: latencyConns, length: b.length}
			if op == "get" {
				v.protocol = pair[i].get
			}
			if err := saturated[i].addRun(pair[i].process, v); err != nil {
				return fmt.Errorf("%s, %s: %w", op, pair[i].name, err)
			}
			if v.rate = b.rate; v.rate == 0 {
				v.rate = saturated[i].perSecond() / 2
			}
			if err := paced[i].addRun(pair[i].process, v); err != nil {
				return fmt.Errorf("%s, %s: %w", op, pair[i].name, err)
			}
		}
	}
	for _, part := range []struct {
		load    string
		results *[2]volleyResult
	}{{"saturated", &saturated}, {"paced", &paced}} {
		for i := range pair {
			b.latencyRow(op, pair[i].name, part.load, &part.results[i], &part.results[1])
		}
	}
	return nil
}

// addRun runs a volley against a server and adds what it finds out.
func (r *volleyResult) addRun(p *process, v *volley) error {
	before, err := p.cpu()
	if err != nil {
		return err
	}
	one, err := v.run()
	if err != nil {
		return err
	}
	after, err := p.cpu()
	if err != nil {
		return err
	}
	r.cpu += after - before
	r.waits.Merge(&one.waits)
	r.late.Merge(&one.late)
	r.count += one.count
	r.wall += one.wall
	return nil
}

func (b *bench) latencyRow(op, name, load string, r, redis *volleyResult) {
	cells := []any{op, name, load, r.perSecond(), fmt.Sprintf("%.1f", r.cpu.Seconds()*1e6/float64(r.count))}
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999, 0.9999, 1} {
		cells = append(cells, millis(r.waits.Quantile(q)))
	}
	compared := ""
	if r != redis {
		of := func(q float64) ratio { return ratio(float64(r.waits.Quantile(q)) / float64(redis.waits.Quantile(q))) }
		compared = fmt.Sprintf("%v, %v", of(0.99), of(0.999))
	}
	late := ""
	if r.late.Total() > 0 {
		late = fmt.Sprintf("%v, %v", millis(r.late.Quantile(0.5)), millis(r.late.Quantile(0.99)))
	}
	b.row(append(cells, compared, late)...)
}

// fillSmall stores all small keys.
func fillSmall(addr string, set protocol) error {
	v := &volley{addr: addr, conns: latencyConns, count: keySpace, protocol: protocol{reply: set.reply, request: func(out []byte, s shot) []byte {
		return set.request(out, shot{random: uint64(s.number*latencyConns + s.conn)})
	}}}
	_, err := v.run()
	return err
}

// millis is a duration in milliseconds, to three digits or the microsecond.
type millis time.Duration

// String implements fmt.Stringer.
func (m millis) String() string {
	ms := time.Duration(m).Seconds() * 1e3
	switch {
	case ms >= 100:
		return thousands(ms)
	case ms >= 10:
		return fmt.Sprintf("%.1f", ms)
	case ms >= 1:
		return fmt.Sprintf("%.2f", ms)
	}
	return fmt.Sprintf("%.3f", ms)
}
