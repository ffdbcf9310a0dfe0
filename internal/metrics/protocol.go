package metrics

import (
	"sync/atomic"
)

// shards is how many sets of counters there are: connections take them in turn, so that busy ones seldom share one.
const shards = 16

// Protocol has the counters of the commands of one protocol. Commands are known by their place in the list.
type Protocol struct {
	name     string
	commands []string
	cells    [shards][]cell
}

// cell is what one shard knows of one command.
type cell struct {
	buckets [bucketCount]atomic.Uint64
	nanos   atomic.Uint64 // sum of the times
	failed  atomic.Uint64
	long    atomic.Uint64 // without a time
}

// NewProtocol returns counters that are 0.
func NewProtocol(name string, commands ...string) *Protocol {
	p := &Protocol{name: name, commands: commands}
	for i := range p.cells {
		p.cells[i] = make([]cell, len(commands))
	}
	return p
}

// Name returns the name of the protocol.
func (p *Protocol) Name() string { return p.name }

// Command is what is known of one command.
type Command struct {
	Name    string
	Count   uint64   // requests answered, well or not
	Failed  uint64   // of them: refused or not carried out; a record that is not there is no failure
	Timed   uint64   // of Count: with a time. Requests that keep their connection for good have none
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
