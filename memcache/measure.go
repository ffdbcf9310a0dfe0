package memcache

import "gotycoon/internal/metrics"

// requestNames are the names under which commands are counted: the words of the text protocols, and
// the further operations of the binary protocol.
func requestNames() []string {
	rows := append(classic(), modern()...)
	names := make([]string, 0, len(rows)+1)
	for _, row := range rows {
		names = append(names, row.name)
	}
	return append(names, "flush", "noop", "stat", unknownRequest)
}

// unknownRequest counts all other commands.
const unknownRequest = "unknown"

// NewRequests returns counters of all commands.
func NewRequests() *metrics.Protocol { return metrics.NewProtocol("memcached", requestNames()...) }

func places() map[string]int {
	of := map[string]int{}
	for i, name := range requestNames() {
		of[name] = i
	}
	return of
}

// measureText counts the command in words.
func (c *conn) measureText() {
	if c.io.Meter == nil {
		return
	}
	d := metrics.Detail{In: len(c.line), Out: len(c.io.Out)}
	word := ""
	if len(c.words) > 0 {
		word = string(c.words[0])
	}
	if len(c.words) > 1 {
		d.Key = c.words[1]
	}
	c.measure(word, d)
}

// measureBinary counts a message.
func (x *exchange) measure() {
	if x.io.Meter == nil {
		return
	}
	row, _ := x.r.op.operation()
	x.conn.measure(row.name, metrics.Detail{Key: x.r.key, In: headerSize + len(x.r.extras) + len(x.r.key) + len(x.r.value), Out: len(x.io.Out)})
}

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
