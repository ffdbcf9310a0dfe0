package memcache

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"gotycoon/db"
)

// Version is the version that the original reports.
const Version = "KyotoTycoon/0.9.56b"

// ModernVersion is the version that a modern server reports: that of the memcached whose commands
// it has, since clients decide by it which commands they may use. It begins with a number, because
// libmemcached takes a server for dead otherwise.
const ModernVersion = "1.6.18-" + Version

// versionText returns the version that a server with this configuration reports.
func (cfg *Config) versionText() string {
	if cfg.Modern {
		return ModernVersion
	}
	return Version
}

// textVersion serves "version".
func textVersion(c *conn) bool {
	c.say("VERSION " + c.s.opts.versionText())
	return true
}

// textVerbosity serves "verbosity N [noreply]". It changes nothing: the server has its own option for
// the log level.
func textVerbosity(c *conn) bool {
	const most = 3
	if len(c.words) > most {
		c.say(replyError)
		return true
	}
	c.wantsReply(1)
	c.answer("OK")
	return true
}

// textFlush serves "flush_all [delay] [noreply]". The original ignores the delay.
func textFlush(c *conn) bool {
	c.wantsReply(1)
	delay := int64(0)
	if c.modern && len(c.words) > 1 && !c.quietAt(1) {
		n, ok := unsigned(c.words[1])
		if !ok && c.words[1][0] != '-' {
			c.answer(replyFormat)
			return true
		}
		delay = int64(min(n, 1<<40))
	}
	if err := c.clear(delay); err != nil {
		c.fail("clear", err)
		return true
	}
	c.answer("OK")
	return true
}

// quietAt reports whether a word is noreply.
func (w *wire) quietAt(i int) bool { return string(w.words[i]) == "noreply" }

// clear removes all items: now, or after a delay. As with expiration times, a delay is a number of
// seconds, or a time if it is too large for that.
func (c *conn) clear(delay int64) error {
	c.s.counts.flushes.Add(1)
	const longest = 1 << 24
	if delay > longest {
		delay = max(0, delay-time.Now().Unix())
	}
	if delay > 0 {
		c.s.flush.plan(time.Duration(delay) * time.Second)
		return nil
	}
	c.s.flush.plan(0)
	return c.db.Clear(&c.io.Owed)
}

// flusher is the timer of a flush_all with a delay. A later flush_all replaces it.
type flusher struct {
	mu     sync.Mutex // protects the fields below
	server *Server    // nil while closed
	timer  *time.Timer
	due    sync.WaitGroup // the running function of the timer
}

func (f *flusher) open(s *Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.server = s
}

// plan replaces the planned clear by one after a delay; with 0 by none.
func (f *flusher) plan(delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
	if delay == 0 || f.server == nil {
		return
	}
	s := f.server
	f.due.Add(1)
	f.timer = time.AfterFunc(delay, func() {
		defer f.due.Done()
		if err := s.db.Clear(nil); err != nil {
			s.logFailure(err)
		}
	})
}

// forget drops the planned clear. The caller holds f.mu.
func (f *flusher) forget() {
	if f.timer != nil && f.timer.Stop() {
		f.due.Done()
	}
	f.timer = nil
}

// close drops the planned clear, and waits for one that is running.
func (f *flusher) close() {
	f.mu.Lock()
	f.forget()
	f.server = nil
	f.mu.Unlock()
	f.due.Wait()
}

// row is one line of stats.
type row struct{ name, value string }

func number(name string, n int64) row { return row{name, strconv.FormatInt(n, 10)} }

// textStats serves "stats [family]". The original ignores the family; modern servers have further
// lists.
func textStats(c *conn) bool {
	family := ""
	if len(c.words) > 1 && c.modern {
		family = string(c.words[1])
	}
	if family == "reset" {
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
func (s *Server) settings() []row {
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
