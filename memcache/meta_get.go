package memcache

import (
	"errors"
	"fmt"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// metaGet serves "mg KEY FLAGS...".
func (c *conn) metaGet() bool {
	m, ok := c.parseMeta(2, "bcfkqstvONRT")
	if !ok {
		return true
	}
	if c.s.queues != nil && c.io.Flush() != nil {
		return false
	}
	it, marks, err := c.metaFetch(&m)
	switch {
	case err == nil && m.has('v'):
		return c.sayMeta(&m, "VA", &it, marks)
	case err == nil:
		c.sayMeta(&m, metaHeader, &it, marks)
	case errors.Is(err, dberr.ErrNoRecord):
		if !m.quiet {
			c.say(metaMiss)
		}
	case errors.Is(err, errToken):
		c.say(metaBadToken)
	case errors.Is(err, errReadOnly):
		c.say(replyReadOnly)
	default:
		c.metaFail("get", err)
	}
	return true
}

var (
	errToken    = errors.New("bad token")                // a flag has a wrong token
	errReadOnly = errors.New("the service is read-only") // a flag asks for an update, with opts=r
)

// metaFetch reads the item, and does what the flags N, R and T ask for. marks tells the client
// about recomputing the item: W means that the client shall do it, Z that another client does.
func (c *conn) metaFetch(m *meta) (it item, marks string, err error) {
	if c.s.queues != nil {
		it, err = c.fetchMessage(m.key, c.deadline())
		return it, "", err
	}
	if m.has('T') && c.s.opts.ReadOnly {
		return it, "", errReadOnly // as touch, also where there is no item
	}
	it, err = c.fetch(m.key, true)
	switch {
	case errors.Is(err, dberr.ErrNoRecord) && m.has('N'):
		return c.vivify(m)
	case err != nil:
		return it, "", err
	case c.s.wins.taken(m.key, it.version):
		marks = " Z"
	}
	least, ok := m.number('R', -1)
	if !ok {
		return it, "", errToken
	}
	if ttl := c.ttl(it.xt); ttl >= 0 && ttl < least {
		marks = " Z"
		if c.s.wins.first(m.key, it.version) {
			marks = " W"
		}
	}
	if m.has('T') {
		xt, ok := c.metaExpiry(m, 'T')
		if !ok {
			return it, "", errToken
		}
		it, err = c.renew(m.key, xt)
	}
	return it, marks, err
}

// vivify stores an empty item if there is none. The client shall compute it (mark W).
func (c *conn) vivify(m *meta) (it item, marks string, err error) {
	if c.s.opts.ReadOnly {
		return it, "", errReadOnly
	}
	xt, ok := c.metaExpiry(m, 'N')
	if !ok {
		return it, "", errToken
	}
	it = item{key: m.key, xt: record.MaxXT}
	it.version, err = c.store(change{mode: modeAdd, key: m.key, xt: xt, versioned: true})
	if errors.Is(err, dberr.ErrDuplicate) { // another client was faster
		it, err = c.fetch(m.key, true)
		return it, " Z", err
	}
	if err == nil {
		c.s.wins.first(m.key, it.version)
	}
	return it, " W", err
}

// metaDebug serves "me KEY": it describes an item.
func (c *conn) metaDebug() bool {
	m, ok := c.parseMeta(2, "b")
	if !ok {
		return true
	}
	version := c.db.Unique(m.key)
	stored, xt, err := c.db.Get(&c.io.Owed, nil, m.key)
	switch {
	case err == nil:
		data, _ := c.decode(stored)
		c.say(fmt.Sprintf("ME %s exp=%d cas=%d size=%d", m.asSent, c.ttl(xt), version, len(data)))
	case errors.Is(err, dberr.ErrNoRecord):
		c.say(metaMiss)
	default:
		c.metaFail("get", err)
	}
	return true
}
