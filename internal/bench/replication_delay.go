//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	"gotycoon/internal/histogram"
)

const (
	delayRounds = 3
	delaySets   = 5_000
	delayRate   = 1_000 // sets in a second, where they are not as fast as they can be
)

// delay measures how long single updates take to a follower, beside a replica of redis: the clock
// runs from the master's reply until the follower answers a get with the value. The follower is
// asked again and again, so a delay contains half of a get on average, and the servers share the
// cores with one client that always has something to do.
func (b *bench) delay() error {
	b.table("From the reply to a single set until the follower answers a get with the value, ms",
		"servers", "sets", "median", "p99", "p99.9", "greatest", "processor time of both, µs/set")
	for range delayRounds {
		for _, rate := range []int{0, delayRate} {
			if err := b.delays("gotycoon, `.kct` with `-ulog`", rate, b.startMaster, b.startFollower, askGotycoon); err != nil {
				return err
			}
			if err := b.delays("redis, append-only file", rate, startRedis, startReplica, askRedis); err != nil {
				return fmt.Errorf("redis: %w", err)
			}
		}
	}
	return nil
}

// delays measures sets one after the other, at most rate in a second.
func (b *bench) delays(name string, rate int, startMaster func(...string) (*process, error),
	startFollower func(*process) (*process, error), ask func(*process) (asker, error)) error {
	m, err := startMaster()
	if err != nil {
		return err
	}
	defer m.stop() // a measurement's end
	f, err := startFollower(m)
	if err != nil {
		return err
	}
	defer f.stop() // a measurement's end
	master, err := ask(m)
	if err != nil {
		return err
	}
	defer master.close()
	follower, err := ask(f)
	if err != nil {
		return err
	}
	defer follower.close()
	if _, err := oneDelay(master, follower, "the first"); err != nil {
		return err
	}
	before, err := cpuOfBoth(m, f)
	if err != nil {
		return err
	}
	var took histogram.Histogram
	begun := time.Now()
	for i := range delaySets {
		if rate > 0 {
			<-time.After(time.Until(begun.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		}
		d, err := oneDelay(master, follower, fmt.Sprint(i))
		if err != nil {
			return err
		}
		took.Add(d)
	}
	after, err := cpuOfBoth(m, f)
	if err != nil {
		return err
	}
	at := func(part float64) string { return fmt.Sprintf("%.3f", took.Quantile(part).Seconds()*1e3) }
	sets := "as fast as they can be"
	if rate > 0 {
		sets = thousands(float64(rate)) + "/s"
	}
	b.row(name, sets, at(0.5), at(0.99), at(0.999), at(1), fmt.Sprintf("%.1f", (after-before).Seconds()*1e6/delaySets))
	return nil
}

// cpuOfBoth returns the processor time of two servers.
func cpuOfBoth(a, b *process) (time.Duration, error) {
	ofA, err1 := a.cpu()
	ofB, err2 := b.cpu()
	return ofA + ofB, errors.Join(err1, err2)
}

// oneDelay stores a value on the master and waits until the follower has it.
func oneDelay(master, follower asker, value string) (time.Duration, error) {
	if err := master.set(value); err != nil {
		return 0, err
	}
	for begin := time.Now(); time.Since(begin) < replicaLimit; {
		if v, err := follower.get(); err != nil || v == value {
			return time.Since(begin), err
		}
	}
	return 0, errors.New("the follower does not get the update")
}

// startRedis starts a redis-server with an append-only file, without snapshots.
func startRedis(more ...string) (*process, error) {
	return start("redis-server", append([]string{"--port", "$PORT", "--dir", "$DIR", "--loglevel", "warning", "--save", "",
		"--appendonly", "yes", "--repl-diskless-sync-delay", "0"}, more...)...)
}

// startReplica starts a redis-server that follows another one.
func startReplica(master *process) (*process, error) {
	return startRedis("--replicaof", "127.0.0.1", master.port)
}
