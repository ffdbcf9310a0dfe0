package counter

import (
	"gotycoon/internal/metrics"
	"gotycoon/services/counter/frame"
)

// commandNames are the names under which requests are counted: known ones in the order of the
// statistics, then unknown ones.
func commandNames() []string {
	return []string{"noop", "get", "acquire", "release", "stats", "dump", "unknown"}
}

// requestOf returns the index of a request in commandNames.
func requestOf(h frame.Header) command {
	if h.Magic != frame.RequestMagic {
		return commands
	}
	switch h.Op {
	case frame.Noop:
		return cmdNoop
	case frame.Get:
		return cmdGet
	case frame.Acquire:
		return cmdAcquire
	case frame.Release:
		return cmdRelease
	case frame.Stats:
		return cmdStats
	case frame.Dump:
		return cmdDump
	}
	return commands
}

// measure counts a request that has been answered.
func (c *conn) measure(h frame.Header, body []byte) {
	if c.Meter == nil {
		return
	}
	requests, place := c.server.Requests(), requestOf(h)
	c.Meter.Note(requests, int(place), place == commands)
	if c.Meter.Detailed() {
		c.Meter.Describe(metrics.Detail{
			Protocol: requests, Command: int(place), Key: nameOf(h.Op, body), In: frame.HeaderLen + len(body), Out: len(c.Out), Failed: place == commands,
		})
	}
}

// nameOf returns the name of the counter that a request is about, nil if there is none.
func nameOf(op frame.Opcode, body []byte) []byte {
	var name []byte
	switch op {
	case frame.Get:
		if a, ok := frame.DecodeGet(body); ok {
			name = a.Name
		}
	case frame.Acquire:
		if a, ok := frame.DecodeAcquire(body); ok {
			name = a.Name
		}
	case frame.Release:
		if a, ok := frame.DecodeRelease(body); ok {
			name = a.Name
		}
	}
	return name
}
