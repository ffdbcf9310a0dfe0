package memcache

import (
	"errors"

	"gotycoon/db"
)

// metaArithmetic serves "ma KEY FLAGS...".
func metaArithmetic(c *conn) bool {
	m, ok := parseMeta(c, 2, "bckqtvCDJMNOT")
	if !ok {
		return true
	}
	a, ok := m.additionOf()
	if !ok {
		c.say(metaBadToken)
		return true
	}
	_, version, xt, err := c.add(a)
	it := &item{key: m.key, data: c.number, xt: xt, version: version}
	switch {
	case err == nil && m.has('v'):
		m.reply("VA", it, "")
	case err == nil:
		if !m.quiet {
			m.reply(metaHeader, it, "")
		}
	case errors.Is(err, db.ErrNoRecord):
		if !m.quiet {
			m.reply(metaMissing, nil, "")
		}
	case errors.Is(err, errChanged):
		m.reply(metaExists, nil, "")
	case errors.Is(err, errNotNumber):
		c.say("CLIENT_ERROR " + err.Error())
	default:
		m.failAloud("accept", err)
	}
	return true
}

// metaAddition reads the flags of ma.
func (m *meta) additionOf() (a addition, ok bool) {
	a = addition{key: m.key, create: m.has('N'), renew: m.has('T')}
	switch string(m.token('M')) {
	case "", "I", "i", "+", "incr":
	case "D", "d", "-", "decr":
		a.down = true
	default:
		return a, false
	}
	if a.delta, ok = m.unsigned('D', 1); !ok {
		return a, false
	}
	if a.initial, ok = m.unsigned('J', 0); !ok {
		return a, false
	}
	if a.unique, ok = m.unsigned('C', 0); !ok {
		return a, false
	}
	letter := byte('N')
	if a.renew {
		letter = 'T'
	}
	a.xt, ok = m.expiryOf(letter)
	return a, ok
}
