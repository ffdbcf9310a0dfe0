//go:build linux

package main

import (
	"fmt"
	"slices"
)

const (
	pairRounds = 5
	pairConns  = 64
)

// A party is one side of a pair: a server, and requests to one of its ports.
type party struct {
	name     string
	bin      string
	args     []string
	port     int       // 0 to 2, for $PORT, $PORT1 and $PORT2
	prepare  *protocol // sent for all small keys first; nil: nothing
	requests protocol
}

// pairs compares requests that have an equal: -oas with redis-server that syncs each set,
// memcached's protocol with memcached, /apply with a GET of the same server, and a lock with a GET
// and with a token of redis. The last row is of redis alone, and tells what the machine leaves of a
// rate when each request waits for another one. Both sides are loaded in turns by a volley, as fast
// as they can. The medians of the rounds count, for the rate and for the processor time, which says
// more on a machine that others use too.
func (b *bench) pairs() error {
	b.table(fmt.Sprintf("Pairs, %d connections, medians of %d runs of %s in turns", pairConns, pairRounds, b.length),
		"requests", "compared with", "requests/s", "of the other", "ratio", "server CPU, µs/request", "of the other", "ratio")
	for _, pair := range b.allPairs() {
		if err := b.comparePair(pair); err != nil {
			return fmt.Errorf("%s: %w", pair[0].name, err)
		}
	}
	return nil
}

func (b *bench) allPairs() [][2]party {
	ours := func(args ...string) []string { return append([]string{"-port", "$PORT", "-le"}, args...) }
	log := []string{"-ulog", "$DIR/ulog", "-sid", "1"}
	filled := httpSet(smallKeys)
	services := ours(append(log, "-services", "$DIR/services.kct", "-quota-port", "$PORT2", "-quota-limit", "1000000000", ":")...)
	get := party{name: "`GET /key`", bin: b.server, args: services, prepare: &filled, requests: httpGet(smallKeys)}
	synced := party{"set, `.kct` with `-ulog -oas`", b.server, ours(append(log, "-oas", "$DIR/a.kct")...), 0, nil, httpSet(smallKeys)}
	always := redisRival("redis, `appendfsync always`", "yes", "always")
	token, volatile := redisTokenThere(), redisRival("", "no", "no")
	waiting := party{name: "redis, a token that all wait for", bin: volatile.bin, args: volatile.args, prepare: &token, requests: redisToken()}
	locks := ours(append(log, "-services", "$DIR/services.kct", "-lock-port", "$PORT1", ":")...)
	memcache := ours("-memcache-port", "$PORT1", ":")
	theirs := []string{"-l", "127.0.0.1", "-p", "$PORT", "-U", "0", "-u", "nobody", "-m", "1024"}
	set, fetch := memcachedSet(smallKeys), memcachedGet(smallKeys)
	return [][2]party{
		{synced, {name: always.name, bin: always.bin, args: always.args, requests: always.set}},
		{{"memcached set, `:`", b.server, memcache, 1, nil, set}, {"memcached", "memcached", theirs, 0, nil, set}},
		{{"memcached get, `:`", b.server, memcache, 1, &set, fetch}, {"memcached", "memcached", theirs, 0, &set, fetch}},
		{{"`/apply?amt=1`", b.server, services, 2, nil, httpPath("/apply?amt=1")}, get},
		{{"`lock` and `release`, one key, which all wait for", b.server, locks, 1, nil, lockOne()},
			{name: "`GET /key`", bin: b.server, args: locks, prepare: &filled, requests: httpGet(smallKeys)}},
		{{"the same", b.server, locks, 1, nil, lockOne()}, waiting},
		{waiting, {name: "redis, `GET`", bin: volatile.bin, args: volatile.args, prepare: &volatile.set, requests: volatile.get}},
	}
}

// comparePair prints a row.
func (b *bench) comparePair(pair [2]party) error {
	var rates, costs [2][]float64
	var servers [2]*process
	for i, who := range pair {
		p, err := start(who.bin, slices.Clone(who.args)...)
		if err != nil {
			return err
		}
		defer p.stop() // a measurement's end
		servers[i] = p
		if who.prepare != nil {
			if err := fillSmall(p.further(who.port), *who.prepare); err != nil {
				return err
			}
		}
	}
	for round := range pairRounds {
		for turn := range pair {
			i := (round + turn) % 2
			var r volleyResult
			v := &volley{addr: servers[i].further(pair[i].port), protocol: pair[i].requests, conns: pairConns, length: b.length}
			if err := r.addRun(servers[i], v); err != nil {
				return err
			}
			rates[i] = append(rates[i], r.perSecond())
			costs[i] = append(costs[i], r.cpu.Seconds()*1e6/float64(r.count))
		}
	}
	rate, cost := [2]float64{median(rates[0]), median(rates[1])}, [2]float64{median(costs[0]), median(costs[1])}
	b.row(pair[0].name, pair[1].name, rate[0], rate[1], ratio(rate[0]/rate[1]),
		fmt.Sprintf("%.2f", cost[0]), fmt.Sprintf("%.2f", cost[1]), ratio(cost[0]/cost[1]))
	return nil
}
