package binproto

import (
	"gotycoon/binproto/frame"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
)

// Meters are where the requests of a Handler are counted.
type Meters struct {
	Binary   *metrics.Protocol // made by NewMeters; nil: requests are not counted
	Sampling bool              // not every request has a line in the log
	Copies   *Copies           // made by NewMeters; nil: copies are not counted
}

// The counted requests, in the order of NewMeters.
const (
	countedSetBulk = iota
	countedRemoveBulk
	countedGetBulk
	countedPlayScript
	countedReplication
	countedCopy
	countedUnknown
)

// NewMeters returns counters of all requests.
func NewMeters() Meters {
	return Meters{
		Binary: metrics.NewProtocol("binary", "set_bulk", "remove_bulk", "get_bulk", "play_script", "replication", "copy", "unknown"),
		Copies: new(Copies),
	}
}

// counted returns the place of a request, and whether it lasts as long as the client likes.
func counted(magic frame.Magic) (place int, long bool) {
	switch magic {
	case frame.SetBulk:
		return countedSetBulk, false
	case frame.RemoveBulk:
		return countedRemoveBulk, false
	case frame.GetBulk:
		return countedGetBulk, false
	case frame.PlayScript:
		return countedPlayScript, false
	case frame.Replication:
		return countedReplication, true
	case frame.Copy:
		return countedCopy, true
	}
	return countedUnknown, false
}

// longRequest counts a request that has no end to be counted at.
func (h *Handler) longRequest(c *netio.Conn, magic frame.Magic) {
	if place, long := counted(magic); long {
		c.Meter.Long(h.opts.Meters.Binary, place)
	}
}

// measure counts a request that has been served.
func (h *Handler) measure(c *netio.Conn, magic frame.Magic, keep bool) {
	place, long := counted(magic)
	if c.Meter == nil || long {
		return
	}
	c.Meter.Note(h.opts.Meters.Binary, place, !keep)
	if c.Meter.Detailed() {
		c.Meter.Describe(metrics.Detail{Protocol: h.opts.Meters.Binary, Command: place, Out: len(c.Out), Failed: !keep})
	}
}
