package lock

import "gotycoon/internal/metrics"

// commandNames are the names under which commands are counted, in the order of the verbs.
func commandNames() []string { return append(verbWords[:], "unknown") }

// measure counts a command that has been answered. The time of a command is the time of its answer,
// without the time that a request waits for a lock.
func (c *conn) measure(cmd *command, length int) {
	if c.in.Meter == nil {
		return
	}
	requests, place, failed := c.server.Requests(), int(cmd.verb), cmd.verb == verbUnknown
	c.in.Meter.Note(requests, place, failed)
	if c.in.Meter.Detailed() {
		c.in.Meter.Describe(metrics.Detail{Protocol: requests, Command: place, Key: cmd.words[0], In: length, Failed: failed})
	}
}
