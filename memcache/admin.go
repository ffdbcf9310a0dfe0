package memcache

import (
	"sync"
	"time"
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

// textVerbosity serves "verbosity N [noreply]". It changes nothing: the server has its own option
// for the log level.
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
