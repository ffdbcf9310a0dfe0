package lock

import "gotycoon/internal/metrics"

// requestNames are the names under which commands are counted, in the order of the verbs.
func requestNames() []string { return append(verbWords[:], "unknown") }

// NewRequests returns counters of all commands. A command's time is that of its answer, without the
// time that a request waits for a lock.
func NewRequests() *metrics.Protocol { return metrics.NewProtocol("lock", requestNames()...) }

// measure counts a command that has been answered.
func (c *conn) measure(cmd *command, length int) {
	if c.in.Meter == nil {
		return
	}
	requests, place, failed := c.server.opts.Requests, int(cmd.verb), cmd.verb == verbUnknown
	c.in.Meter.Note(requests, place, failed)
	if c.in.Meter.Detailed() {
		c.in.Meter.Describe(metrics.Detail{Protocol: requests, Command: place, Key: cmd.words[0], In: length, Failed: failed})
	}
}
