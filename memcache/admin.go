package memcache

import "time"

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
