package memcache

import (
	"errors"
	"fmt"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// metaGet serves "mg KEY FLAGS...".
func metaGet(c *conn) bool {
	m, ok := parseMeta(c, 2, "bcfkqstvONRT")
	if !ok {
		return true
	}
	if c.s.queues != nil && c.io.Flush() != nil {
		return false
	}
	it, marks, err := m.read()
	switch {
	case err == nil && m.has('v'):
		return m.reply("VA", &it, marks)
	case err == nil:
		m.reply(metaHeader, &it, marks)
	case errors.Is(err, dberr.ErrNoRecord):
		if !m.quiet {
			c.say(metaMiss)
		}
	case errors.Is(err, errToken):
		c.say(metaBadToken)
	case errors.Is(err, errReadOnly):
		c.say(replyReadOnly)
	default:
		m.failAloud("get", err)
	}
	return true
}

var (
	errToken    = errors.New("bad token")                // a flag has a wrong token
	errReadOnly = errors.New("the service is read-only") // a flag asks for an update, with opts=r
)

// read reads the item, and does what the flags N, R and T ask for. marks tells the client
// about recomputing the item: W means that the client shall do it, Z that another client does.
func (m *meta) read() (it item, marks string, err error) {
	if m.s.queues != nil {
		it, err = m.fetchMessage(m.key, m.deadline())
		return it, "", err
	}
	if m.has('T') && m.s.opts.ReadOnly {
		return it, "", errReadOnly // as touch, also where there is no item
	}
	it, err = m.fetch(m.key, true)
	switch {
	case errors.Is(err, dberr.ErrNoRecord) && m.has('N'):
		return m.vivify()
	case err != nil:
		return it, "", err
	case m.s.wins.taken(m.key, it.version):
		marks = " Z"
	}
	least, ok := m.number('R', -1)
	if !ok {
		return it, "", errToken
	}
	if ttl := m.ttl(it.xt); ttl >= 0 && ttl < least {
		marks = " Z"
		if m.s.wins.first(m.key, it.version) {
			marks = " W"
		}
	}
	if m.has('T') {
		xt, ok := m.expiryOf('T')
		if !ok {
			return it, "", errToken
		}
		it, err = m.renew(m.key, xt)
	}
	return it, marks, err
}

// vivify stores an empty item if there is none. The client shall compute it (mark W).
func (m *meta) vivify() (it item, marks string, err error) {
	if m.s.opts.ReadOnly {
		return it, "", errReadOnly
	}
	xt, ok := m.expiryOf('N')
	if !ok {
		return it, "", errToken
	}
	it = item{key: m.key, xt: record.MaxXT}
	it.version, err = m.store(change{mode: modeAdd, key: m.key, xt: xt, versioned: true})
	if errors.Is(err, dberr.ErrDuplicate) { // another client was faster
		it, err = m.fetch(m.key, true)
		return it, " Z", err
	}
	if err == nil {
		m.s.wins.first(m.key, it.version)
	}
	return it, " W", err
}

// metaDebug serves "me KEY": it describes an item.
func metaDebug(c *conn) bool {
	m, ok := parseMeta(c, 2, "b")
	if !ok {
		return true
	}
	stored, xt, version, err := c.db.GetUnique(&c.io.Owed, nil, m.key)
	switch {
	case err == nil:
		data, _ := c.decode(stored)
		c.say(fmt.Sprintf("ME %s exp=%d cas=%d size=%d", m.asSent, c.ttl(xt), version, len(data)))
	case errors.Is(err, dberr.ErrNoRecord):
		c.say(metaMiss)
	default:
		m.failAloud("get", err)
	}
	return true
}

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

// changeOf reads the flags of ms.
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

// carryOut carries out ms and answers.
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
	case errors.Is(err, dberr.ErrNoRecord) && ch.unique != 0:
		m.reply(metaMissing, nil, "")
	case errors.Is(err, dberr.ErrNoRecord), errors.Is(err, dberr.ErrDuplicate):
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
	case errors.Is(err, dberr.ErrNoRecord):
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
