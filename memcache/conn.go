package memcache

import "gotycoon/internal/metrics"

// conn is one connection. It belongs to one goroutine. wire reads requests and writes replies;
// storage works on items and messages.
type conn struct {
	wire
	storage
	peer  string
	asked asked // the request in execution, for owed.Rights

	unstop func() bool // the end of the server stops the connection no more

	commands map[string]*command // of the text protocols, by name
}

// asked is the request that has been permitted.
type asked struct {
	binary  bool
	request request // of the binary protocol
	denied  error   // the right was lost after that
}

// command is a row of the table of commands.
type command struct {
	name   string
	least  int              // least number of words, with the command's own
	writes bool             // refused with opts=r
	run    func(*conn) bool // reports whether the connection stays
}

// logCommand logs a command, as the original does.
func (c *conn) logCommand(word []byte) {
	if c.s.logs() {
		c.s.info("(%s): %s", c.peer, word)
	}
}

// unknownRequest counts all other commands.
const unknownRequest = "unknown"

func (c *conn) measure(word string, d metrics.Detail) {
	place, known := c.s.places[word]
	if !known {
		place = c.s.places[unknownRequest]
	}
	d.Protocol, d.Command, d.Failed = c.s.opts.Requests, place, !known || c.failed
	c.failed = false
	c.io.Meter.Note(d.Protocol, place, d.Failed)
	if c.io.Meter.Detailed() {
		d.Database = c.db.Name()
		c.io.Meter.Describe(d)
	}
}
