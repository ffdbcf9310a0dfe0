package memcache

import (
	"errors"
	"strconv"

	"gotycoon/db/dberr"
)

// delete serves "delete K [time] [noreply]"; the time has no meaning.
func (c *conn) delete() bool {
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

// arithmetic serves "incr K N [noreply]" and "decr K N [noreply]".
func (c *conn) arithmetic(down bool) bool {
	c.wantsReply(3)
	if !c.modern {
		return c.arithmeticClassic(down)
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

func (c *conn) arithmeticClassic(down bool) bool {
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
