package memcache

import (
	"errors"

	"gotycoon/db/dberr"
)

// metaArithmetic serves "ma KEY FLAGS...".
func (c *conn) metaArithmetic() bool {
	m, ok := c.parseMeta(2, "bckqtvCDJMNOT")
	if !ok {
		return true
	}
	a, ok := c.metaAddition(&m)
	if !ok {
		c.say(metaBadToken)
		return true
	}
	_, version, xt, err := c.add(a)
	it := &item{key: m.key, data: c.number, xt: xt, version: version}
	switch {
	case err == nil && m.has('v'):
		c.sayMeta(&m, "VA", it, "")
	case err == nil:
		if !m.quiet {
			c.sayMeta(&m, metaHeader, it, "")
		}
	case errors.Is(err, dberr.ErrNoRecord):
		if !m.quiet {
			c.sayMeta(&m, metaMissing, nil, "")
		}
	case errors.Is(err, errChanged):
		c.sayMeta(&m, metaExists, nil, "")
	case errors.Is(err, errNotNumber):
		c.say("CLIENT_ERROR " + err.Error())
	default:
		c.metaFail("accept", err)
	}
	return true
}

// metaAddition reads the flags of ma.
func (c *conn) metaAddition(m *meta) (a addition, ok bool) {
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
	a.xt, ok = c.metaExpiry(m, letter)
	return a, ok
}
