package jesync

import "gotycoon/internal/metrics"

// requestNames are the commands as they are counted; the last one stands for all that there are not.
func requestNames() []string {
	return []string{"lock", "lock-fenced", "release", "status", "renew", "cancel", "status-by-key", "status-by-grants",
		"status-by-requests", "list", "quit", "unknown"}
}

// NewRequests returns counters of all commands. Their times are those of the answers: that a lock has to be waited for is
// not in them.
func NewRequests() *metrics.Protocol { return metrics.NewProtocol("lock", requestNames()...) }

// places is where the commands are in the list of NewRequests.
func places() map[string]int {
	of := map[string]int{}
	for i, name := range requestNames() {
		of[name] = i
	}
	return of
}

// measure counts a command that has been answered.
func (c *conn) measure(cmd *command, length int) {
	if c.in.Meter == nil {
		return
	}
	place, known := c.server.places[string(cmd.name)]
	if !known {
		place = c.server.places["unknown"]
	}
	requests := c.server.opts.Requests
	c.in.Meter.Note(requests, place, !known)
	if c.in.Meter.Detailed() {
		c.in.Meter.Describe(metrics.Detail{Protocol: requests, Command: place, Key: cmd.words[0], In: length, Failed: !known})
	}
}
