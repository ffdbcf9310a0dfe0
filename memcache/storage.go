package memcache

import (
	"errors"

	"gotycoon/db/dberr"
)

// storage serves "VERB K FLAGS EXPTIME SIZE [UNIQUE] [noreply]" and the data block.
func (c *conn) storage(m mode) bool {
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
