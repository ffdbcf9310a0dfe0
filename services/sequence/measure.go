package sequence

import (
	"bytes"

	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
)

// NewSequenceRequests returns counters of the requests of a SequenceServer.
func NewSequenceRequests() *metrics.Protocol {
	return metrics.NewProtocol("sequence", "fetch", "explain", unknownRequest)
}

// NewQuotaRequests returns counters of the requests of a QuotaServer.
func NewQuotaRequests() *metrics.Protocol {
	return metrics.NewProtocol("quota", "query", "empty", "apply", "increase", "decrease", "cancel", unknownRequest)
}

// unknownRequest counts the requests for all other paths.
const unknownRequest = "unknown"

// requests are counters and the index of the counter of each path.
type requests struct {
	*metrics.Protocol
	places map[string]int
}

func newRequests(p *metrics.Protocol) *requests {
	if p == nil {
		return nil
	}
	r := &requests{p, map[string]int{}}
	for i, c := range p.Commands() {
		r.places["/"+c.Name] = i
	}
	return r
}

// measure counts a request that has been answered.
func (p *port) measure(c *netio.Conn, r *request, status string) {
	if c.Meter == nil || p.counted == nil {
		return
	}
	path, query, _ := bytes.Cut(r.target, []byte("?"))
	place, known := p.counted.places[string(path)]
	if !known {
		place = p.counted.places["/"+unknownRequest]
	}
	failed := status != statusOK
	c.Meter.Note(p.counted.Protocol, place, failed)
	if c.Meter.Detailed() {
		c.Meter.Describe(metrics.Detail{Protocol: p.counted.Protocol, Command: place, Key: query, In: len(r.target), Out: len(c.Out), Failed: failed})
	}
}
