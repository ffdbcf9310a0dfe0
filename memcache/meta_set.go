package memcache

import (
	"errors"

	"gotycoon/db"
)

// metaSet serves "ms KEY SIZE FLAGS..." and the data block. The block is read even if the command
// is wrong, so that its bytes are not taken for commands.
func metaSet(c *conn) bool {
	size, ok := unsigned(c.words[2])
	if !ok || size > maxValue {
		c.say("CLIENT_ERROR bad data chunk")
		return !ok // a block that large is not read; what follows would be taken for commands
	}
	m, ok := parseMeta(c, 3, "bckqsCFMOT")
	ch, fits := change{}, false
	if ok {
		if ch, fits = m.changeOf(); !fits {
			c.say(metaBadToken)
		}
	}
	var arrived bool
	if ch.data, ch.room, arrived = c.block(int64(size)); !arrived {
		return false
	}
	if ok && fits {
		m.carryOut(ch)
	}
	return true
}

// metaChange reads the flags of ms.
func (m *meta) changeOf() (ch change, ok bool) {
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
	ch.xt, ok = m.expiryOf('T')
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
func (m *meta) carryOut(ch change) {
	version, err := m.store(ch)
	it := &item{data: ch.data, flags: ch.flags, version: version}
	switch {
	case err == nil:
		if !m.quiet {
			m.reply(metaHeader, it, "")
		}
	case errors.Is(err, errChanged):
		m.reply(metaExists, nil, "")
	case errors.Is(err, db.ErrNoRecord) && ch.unique != 0:
		m.reply(metaMissing, nil, "")
	case errors.Is(err, db.ErrNoRecord), errors.Is(err, db.ErrDuplicate):
		m.reply(metaNotStored, nil, "")
	default:
		m.failAloud(ch.mode.call(), err)
	}
}

// metaDelete serves "md KEY FLAGS...". The flag I (invalidate) removes the item, too: there are no
// stale items here.
func metaDelete(c *conn) bool {
	m, ok := parseMeta(c, 2, "bkqCIOT")
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
			m.reply(metaHeader, nil, "")
		}
	case errors.Is(err, db.ErrNoRecord):
		if !m.quiet {
			m.reply(metaMissing, nil, "")
		}
	case errors.Is(err, errChanged):
		m.reply(metaExists, nil, "")
	default:
		m.failAloud("remove", err)
	}
	return true
}
