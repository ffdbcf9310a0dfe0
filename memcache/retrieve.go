package memcache

import (
	"errors"
	"strconv"

	"gotycoon/db/dberr"
)

// get serves "get K..." and "gets K...". In modern servers gets shows the versions.
func (c *conn) get(versioned bool) bool {
	if c.s.queues != nil {
		return c.getMessages()
	}
	if c.modern && len(c.words) == 1 {
		c.say(replyError)
		return true
	}
	begin := len(c.io.Out)
	for _, key := range c.words[1:] {
		it, err := c.fetch(key, versioned && c.modern)
		switch {
		case err == nil:
			if !c.sayValue(&it) {
				return false
			}
			if len(it.data) > flushSize {
				begin = len(c.io.Out) // all else has been sent
			}
		case errors.Is(err, dberr.ErrNoRecord):
		default:
			// The items before the error are taken back: the client must not take the others for
			// missing.
			c.io.Out = c.io.Out[:min(begin, len(c.io.Out))]
			c.fail("get", err)
			return true
		}
		if len(c.io.Out) > flushSize {
			if c.io.Flush() != nil {
				return false
			}
			begin = 0
		}
	}
	c.say("END")
	return true
}

// sayValue adds an item to the replies, with its version if that was asked for. A large item is
// sent at once. It reports whether the connection stays.
func (c *conn) sayValue(it *item) bool {
	out := append(c.io.Out, "VALUE "...)
	out = append(out, it.key...)
	out = append(out, ' ')
	out = strconv.AppendUint(out, uint64(it.flags), 10)
	out = append(out, ' ')
	out = strconv.AppendInt(out, int64(len(it.data)), 10)
	if it.version != 0 {
		out = append(out, ' ')
		out = strconv.AppendUint(out, it.version, 10)
	}
	c.io.Out = append(out, '\r', '\n')
	return c.sayData(it.data) && c.sayEnd()
}

// sayData adds the data of an item, or sends them where they are large, so that they are in memory once.
func (c *conn) sayData(data []byte) bool {
	if len(data) > flushSize {
		return c.io.Send(data) == nil
	}
	c.io.Out = append(c.io.Out, data...)
	return true
}

func (c *conn) sayEnd() bool {
	c.io.Out = append(c.io.Out, '\r', '\n')
	return true
}

// getAndTouch serves "gat EXPTIME K..." and "gats EXPTIME K...".
func (c *conn) getAndTouch(versioned bool) bool {
	xt := c.expiry(leadingInt(c.words[1]))
	for _, key := range c.words[2:] {
		it, err := c.renew(key, xt)
		c.s.counts.get.count(err == nil)
		switch {
		case err == nil:
			if !versioned {
				it.version = 0
			}
			if !c.sayValue(&it) {
				return false
			}
		case errors.Is(err, dberr.ErrNoRecord):
		default:
			c.fail("accept", err)
			return true
		}
		if len(c.io.Out) > flushSize && c.io.Flush() != nil {
			return false
		}
	}
	c.say("END")
	return true
}

// touch serves "touch K EXPTIME [noreply]".
func (c *conn) touch() bool {
	c.wantsReply(3)
	switch _, err := c.renew(c.words[1], c.expiry(leadingInt(c.words[2]))); {
	case err == nil:
		c.answer("TOUCHED")
	case errors.Is(err, dberr.ErrNoRecord):
		c.answer(replyNotFound)
	default:
		c.fail("accept", err)
	}
	return true
}
