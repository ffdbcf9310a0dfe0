package metrics

import "sync/atomic"

// shards is the number of sets of counters. Connections take the sets in turn, so that busy
// connections seldom share a set.
const shards = 16

// Protocol has the counters of the commands of one protocol. A command is known by its index in the
// list of commands.
type Protocol struct {
	name     string
	commands []string
	cells    [shards][]cell
}

// cell has the counters of one command in one shard.
type cell struct {
	buckets [bucketCount]atomic.Uint64
	nanos   atomic.Uint64 // sum of the times
	failed  atomic.Uint64
	long    atomic.Uint64 // requests without a time
}

// NewProtocol returns a Protocol whose counters are 0.
func NewProtocol(name string, commands ...string) *Protocol {
	p := &Protocol{name: name, commands: commands}
	for i := range p.cells {
		p.cells[i] = make([]cell, len(commands))
	}
	return p
}

// Name returns the name of the protocol.
func (p *Protocol) Name() string { return p.name }

// Command has the figures of one command.
type Command struct {
	Name    string
	Count   uint64   // requests answered, also with an error
	Failed  uint64   // part of Count: refused or not done; a missing record is no failure
	Timed   uint64   // part of Count: requests with a time, so all but those of Recorder.Long
	Seconds float64  // sum of the times
	Buckets []uint64 // requests with a time up to each of Bounds
}

// Commands returns the figures of all commands, in the order of the list.
func (p *Protocol) Commands() []Command {
	all := make([]Command, len(p.commands))
	for i := range all {
		all[i] = p.command(i)
	}
	return all
}

func (p *Protocol) command(i int) Command {
	c := Command{Name: p.commands[i], Buckets: make([]uint64, len(bounds))}
	var own [bucketCount]uint64
	for s := range p.cells {
		cell := &p.cells[s][i]
		for b := range own {
			own[b] += cell.buckets[b].Load()
		}
		c.Seconds += float64(cell.nanos.Load()) / 1e9
		c.Failed += cell.failed.Load()
		c.Count += cell.long.Load()
	}
	for b, n := range own {
		c.Timed += n
		if b < len(c.Buckets) {
			c.Buckets[b] = c.Timed
		}
	}
	c.Count += c.Timed
	return c
}
