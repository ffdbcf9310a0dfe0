package binproto

import (
	"gotycoon/client/wire/frame"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/opcount"
)

// Meters count the requests of a Handler.
type Meters struct {
	Binary   *metrics.Protocol // made by NewMeters; nil: requests are not counted
	Sampling bool              // requests are sampled, so the log has no line for each
	Copies   *opcount.Copies   // made by NewMeters; nil: copies are not counted
}

// Indexes of the requests in the list of NewMeters.
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
		Copies: new(opcount.Copies),
	}
}

// counted returns the index of a request, and whether the client decides how long it lasts.
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

// longRequest counts a request at its beginning, if the client decides how long it lasts.
func (h *Handler) longRequest(c *netio.Conn, magic frame.Magic) {
	if place, long := counted(magic); long {
		c.Meter.Long(h.opts.Meters.Binary, place)
	}
}

// measure counts a request at its end, unless longRequest has counted it.
func (h *Handler) measure(c *netio.Conn, magic frame.Magic, keep bool, d metrics.Detail) {
	place, long := counted(magic)
	if c.Meter == nil || long {
		return
	}
	d.Protocol, d.Command, d.Out, d.Failed = h.opts.Meters.Binary, place, len(c.Out), !keep
	c.Meter.Note(d.Protocol, place, d.Failed)
	if c.Meter.Detailed() {
		c.Meter.Describe(d)
	}
}
