package memcache

import (
	"errors"
	"strconv"

	"gotycoon/db/dberr"
)

// textGet serves "get K..." and "gets K...". In modern servers gets shows the versions.
func textGet(c *conn, versioned bool) bool {
	if c.s.queues != nil {
		return getMessages(c)
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

// getMessages serves "get NAME..." of a queue. All names share one deadline.
func getMessages(c *conn) bool {
	if c.io.Flush() != nil { // earlier replies must not wait for messages
		return false
	}
	deadline := c.deadline()
	return c.sayValues(c.words[1:], "get", func(name []byte) (item, error) { return c.fetchMessage(name, deadline) })
}

// sayValues answers with the items that fetch finds. If fetch fails, the reply names call, which is
// an operation of the original.
func (c *conn) sayValues(keys [][]byte, call string, fetch func(key []byte) (item, error)) bool {
	for _, key := range keys {
		it, err := fetch(key)
		switch {
		case err == nil:
			if !c.sayValue(&it) {
				return false
			}
		case errors.Is(err, dberr.ErrNoRecord):
		default:
			c.fail(call, err)
			return true
		}
		if len(c.io.Out) > flushSize && c.io.Flush() != nil {
			return false
		}
	}
	c.say("END")
	return true
}

// textGetAndTouch serves "gat EXPTIME K..." and "gats EXPTIME K...".
func textGetAndTouch(c *conn, versioned bool) bool {
	xt := c.expiry(leadingInt(c.words[1]))
	return c.sayValues(c.words[2:], "accept", func(key []byte) (item, error) {
		it, err := c.renew(key, xt)
		c.s.counts.get.count(err == nil)
		if !versioned {
			it.version = 0
		}
		return it, err
	})
}

// textTouch serves "touch K EXPTIME [noreply]".
func textTouch(c *conn) bool {
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

// textStore serves "VERB K FLAGS EXPTIME SIZE [UNIQUE] [noreply]" and the data block.
func textStore(c *conn, m mode) bool {
	ch := change{mode: m, key: c.words[1], flags: uint32(leadingInt(c.words[2])), xt: c.expiry(leadingInt(c.words[3]))}
	options := 5
	if m == modeCAS {
		options = 6
		ch.unique = uniqueOf(c.words[5])
	}
	c.wantsReply(options)
	var ok bool
	if ch.data, ch.room, ok = c.block(leadingInt(c.words[4])); !ok {
		return false
	}
	_, err := c.store(ch)
	switch {
	case err == nil:
		c.answer(replyStored)
	case errors.Is(err, errChanged):
		c.answer(replyExists)
	case m == modeCAS && errors.Is(err, dberr.ErrNoRecord):
		c.answer(replyNotFound)
	case errors.Is(err, dberr.ErrNoRecord), errors.Is(err, dberr.ErrDuplicate):
		c.answer(replyNot)
	default:
		c.fail(m.call(), err)
	}
	return true
}

// uniqueOf reads a version that a client sends. For a word that is no version it returns a version
// that no item has.
func uniqueOf(word []byte) uint64 {
	if n, ok := unsigned(word); ok && n != 0 {
		return n
	}
	return 1 << 63
}

// textDelete serves "delete K [time] [noreply]"; the time has no meaning.
func textDelete(c *conn) bool {
	const most = 4
	if c.modern && len(c.words) > most {
		c.say(replyFormat + ".  Usage: delete <key> [noreply]")
		return true
	}
	c.wantsReply(2)
	switch err := c.remove(c.words[1], 0); {
	case err == nil:
		c.answer("DELETED")
	case errors.Is(err, dberr.ErrNoRecord):
		c.answer(replyNotFound)
	default:
		c.fail("remove", err)
	}
	return true
}

// textArithmetic serves "incr K N [noreply]" and "decr K N [noreply]".
func textArithmetic(c *conn, down bool) bool {
	c.wantsReply(3)
	if !c.modern {
		return arithmeticClassic(c, down)
	}
	delta, ok := unsigned(c.words[2])
	if !ok {
		c.answer("CLIENT_ERROR invalid numeric delta argument")
		return true
	}
	sum, _, _, err := c.add(addition{key: c.words[1], delta: delta, down: down})
	c.answerSum(strconv.FormatUint(sum, 10), err)
	return true
}

func arithmeticClassic(c *conn, down bool) bool {
	delta := leadingInt(c.words[2])
	if down {
		delta = -delta
	}
	sum, err := c.addClassic(c.words[1], delta, down)
	c.answerSum(strconv.FormatInt(sum, 10), err)
	return true
}

func (c *conn) answerSum(sum string, err error) {
	switch {
	case err == nil:
		c.answer(sum)
	case errors.Is(err, dberr.ErrNoRecord):
		c.answer(replyNotFound)
	case errors.Is(err, errNotNumber):
		c.answer("CLIENT_ERROR " + err.Error())
	default:
		c.fail("accept", err)
	}
}
