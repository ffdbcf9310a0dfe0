package memcache

import (
	"errors"
	"fmt"

	"gotycoon/db"
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
	case errors.Is(err, db.ErrNoRecord):
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

// metaFetch reads the item, and does what the flags N, R and T ask for. marks tells the client
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
	case errors.Is(err, db.ErrNoRecord) && m.has('N'):
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
	it = item{key: m.key, xt: db.MaxXT}
	it.version, err = m.store(change{mode: modeAdd, key: m.key, xt: xt, versioned: true})
	if errors.Is(err, db.ErrDuplicate) { // another client was faster
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
	version := c.db.Unique(m.key)
	stored, xt, err := c.db.Get(&c.io.Owed, nil, m.key)
	switch {
	case err == nil:
		data, _ := c.decode(stored)
		c.say(fmt.Sprintf("ME %s exp=%d cas=%d size=%d", m.asSent, c.ttl(xt), version, len(data)))
	case errors.Is(err, db.ErrNoRecord):
		c.say(metaMiss)
	default:
		m.failAloud("get", err)
	}
	return true
}
