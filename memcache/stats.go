package memcache

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"gotycoon/db"
)

// head returns the rows about process and database.
func (s *shared) head(status map[string]string) []row {
	now := time.Now()
	return []row{
		number("pid", int64(os.Getpid())),
		number("uptime", int64(now.Sub(s.opts.Started).Seconds())),
		number("time", now.Unix()),
		{"version", s.opts.versionText()},
		number("pointer_size", strconv.IntSize),
		number("curr_connections", s.counts.open.Load()),
		number("threads", int64(s.opts.Threads)),
		{"curr_items", status["count"]},
		{"bytes", status["size"]},
	}
}

// familyReset is the family of stats that sets the counters of the service to 0, for all clients.
const familyReset = "reset"

// textStats serves "stats [family]". The original ignores the family; modern servers have further
// lists.
func textStats(c *conn) bool {
	family := ""
	if len(c.words) > 1 && c.modern {
		family = string(c.words[1])
	}
	if family == familyReset {
		c.s.counts.reset()
		c.say("RESET")
		return true
	}
	rows, known, err := c.rows(family)
	switch {
	case err != nil:
		c.fail("status", err)
		return true
	case !known:
		c.say(replyError)
		return true
	}
	for _, r := range rows {
		c.say("STAT " + r.name + " " + r.value)
	}
	c.say("END")
	return true
}

// rows returns the rows of a family; the family "" has the original's rows.
func (c *conn) rows(family string) (rows []row, known bool, err error) {
	switch family {
	case "":
		rows, err = c.general()
		return rows, true, err
	case "settings":
		return c.s.settings(), true, nil
	case "items", "slabs", "sizes", "conns", "detail", "cachedump", "malloc", "maps":
		return nil, true, nil // families of memcached that have no meaning here
	}
	return nil, false, nil
}

// general returns the original's rows, and in modern servers further rows behind them.
func (c *conn) general() ([]row, error) {
	// Figures for those who watch the server do not wait for its log.
	status, err := c.db.Status(new(db.Pending))
	if err != nil {
		return nil, err
	}
	n := &c.s.counts
	rows := c.s.head(status)
	names := make([]string, 0, len(status))
	for name := range status {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		rows = append(rows, row{"db_" + name, status[name]})
	}
	rows = append(rows, n.rows()...)
	if c.modern {
		rows = append(rows, n.moreRows()...)
	}
	return rows, nil
}

// settings returns the rows of "stats settings".
func (s *shared) settings() []row {
	cas := "no"
	if s.opts.Modern {
		cas = "yes"
	}
	return []row{
		number("maxbytes", 0), number("maxconns", 0), number("tcpport", int64(s.opts.Port)), number("udpport", 0),
		{"inter", s.opts.Host}, number("verbosity", 0), {"evictions", "off"}, {"cas_enabled", cas},
		number("num_threads", int64(s.opts.Threads)), {"flush_enabled", fmt.Sprint(!s.opts.ReadOnly)},
		number("item_size_max", maxValue),
	}
}
