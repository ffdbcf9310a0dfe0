package memcache

import (
	"errors"

	"gotycoon/db/dberr"
)

// metaSet serves "ms KEY SIZE FLAGS..." and the data block. The block is read even if the command
// is wrong, so that its bytes are not taken for commands.
func (c *conn) metaSet() bool {
	size, ok := unsigned(c.words[2])
	if !ok || size > maxValue {
		c.say("CLIENT_ERROR bad data chunk")
		return !ok // a block that large is not read; what follows would be taken for commands
	}
	m, ok := c.parseMeta(3, "bckqsCFMOT")
	ch, fits := change{}, false
	if ok {
		if ch, fits = c.metaChange(&m); !fits {
			c.say(metaBadToken)
		}
	}
	var arrived bool
	if ch.data, ch.room, arrived = c.block(int64(size)); !arrived {
		return false
	}
	if ok && fits {
		c.metaStore(&m, ch)
	}
	return true
}

// metaChange reads the flags of ms.
func (c *conn) metaChange(m *meta) (ch change, ok bool) {
	ch = change{key: m.key, versioned: m.has('c')}
	mode, ok := metaMode(m.token('M'))
	if !ok {
		return ch, false
	}
	ch.mode = mode
	flags, ok := m.unsigned('F', 0)
	if !ok {
		return ch, false
	}
	ch.flags = uint32(flags)
	if ch.unique, ok = m.unsigned('C', 0); !ok {
		return ch, false
	}
	ch.xt, ok = c.metaExpiry(m, 'T')
	return ch, ok
}

// metaMode reads the token of ms's flag M.
func metaMode(token []byte) (mode, bool) {
	switch string(token) {
	case "", "S", "s", "set":
		return modeSet, true
	case "E", "e", "add":
		return modeAdd, true
	case "A", "a", "append":
		return modeAppend, true
	case "P", "p", "prepend":
		return modePrepend, true
	case "R", "r", "replace":
		return modeReplace, true
	}
	return 0, false
}

// metaStore carries out ms and answers.
func (c *conn) metaStore(m *meta, ch change) {
	version, err := c.store(ch)
	it := &item{data: ch.data, flags: ch.flags, version: version}
	switch {
	case err == nil:
		if !m.quiet {
			c.sayMeta(m, metaHeader, it, "")
		}
	case errors.Is(err, errChanged):
		c.sayMeta(m, metaExists, nil, "")
	case errors.Is(err, dberr.ErrNoRecord) && ch.unique != 0:
		c.sayMeta(m, metaMissing, nil, "")
	case errors.Is(err, dberr.ErrNoRecord), errors.Is(err, dberr.ErrDuplicate):
		c.sayMeta(m, metaNotStored, nil, "")
	default:
		c.metaFail(ch.mode.call(), err)
	}
}

// metaDelete serves "md KEY FLAGS...". The flag I (invalidate) removes the item, too: there are no
// stale items here.
func (c *conn) metaDelete() bool {
	m, ok := c.parseMeta(2, "bkqCIOT")
	if !ok {
		return true
	}
	unique, ok := m.unsigned('C', 0)
	if !ok {
		c.say(metaBadToken)
		return true
	}
	switch err := c.remove(m.key, unique); {
	case err == nil:
		if !m.quiet {
			c.sayMeta(&m, metaHeader, nil, "")
		}
	case errors.Is(err, dberr.ErrNoRecord):
		if !m.quiet {
			c.sayMeta(&m, metaMissing, nil, "")
		}
	case errors.Is(err, errChanged):
		c.sayMeta(&m, metaExists, nil, "")
	default:
		c.metaFail("remove", err)
	}
	return true
}
