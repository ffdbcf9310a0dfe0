package memcache

import (
	"encoding/base64"
	"errors"
	"strconv"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// maxMetaKey is the length of the longest key of a meta command, after decoding.
const maxMetaKey = 250

// Return codes of meta commands.
const (
	metaHeader    = "HD"
	metaMissing   = "NF"
	metaMiss      = "EN"
	metaNotStored = "NS"
	metaExists    = "EX"
	metaBadFlag   = "CLIENT_ERROR invalid flag"
	metaBadToken  = "CLIENT_ERROR bad token in command line format"
)

// meta is a parsed meta command on its connection: its key, and its flags in their order. A flag is
// a letter and a token, which may be empty.
type meta struct {
	*conn
	key    []byte // decoded
	asSent []byte
	flags  [][]byte
	quiet  bool // q
}

// parseMeta reads the key and the flags; options is the index of the first flag, allowed are the
// letters that the command knows. It answers an error itself and returns false.
func parseMeta(c *conn, options int, allowed string) (m meta, ok bool) {
	m = meta{conn: c, key: c.words[1], asSent: c.words[1], flags: c.words[options:]}
	for _, flag := range m.flags {
		switch letter := flag[0]; {
		case !has(allowed, letter):
			c.say(metaBadFlag)
			return m, false
		case letter == 'q':
			m.quiet = true
		case letter == 'b':
			key, err := base64.StdEncoding.DecodeString(string(m.asSent))
			if err != nil {
				c.say("CLIENT_ERROR error decoding key")
				return m, false
			}
			m.key = key
		}
	}
	if len(m.key) > maxMetaKey {
		c.say(replyFormat)
		return m, false
	}
	return m, true
}

func has(letters string, letter byte) bool {
	for i := range len(letters) {
		if letters[i] == letter {
			return true
		}
	}
	return false
}

// token returns the token of a flag, nil if the flag is not given.
func (m *meta) token(letter byte) []byte {
	for _, flag := range m.flags {
		if flag[0] == letter {
			return flag[1:]
		}
	}
	return nil
}

// has reports whether a flag is given.
func (m *meta) has(letter byte) bool { return m.token(letter) != nil }

// number returns the number in the token of a flag; otherwise, if the flag is not given.
func (m *meta) number(letter byte, otherwise int64) (n int64, ok bool) {
	token := m.token(letter)
	if token == nil {
		return otherwise, true
	}
	n, err := strconv.ParseInt(string(token), 10, 64)
	return n, err == nil
}

// unsigned is number for versions and counters.
func (m *meta) unsigned(letter byte, otherwise uint64) (n uint64, ok bool) {
	token := m.token(letter)
	if token == nil {
		return otherwise, true
	}
	return unsigned(token)
}

// expiryOf returns the expiration time in the token of a flag; never, if the flag is not given.
func (m *meta) expiryOf(letter byte) (xt record.XT, ok bool) {
	n, ok := m.number(letter, 0)
	return m.expiry(n), ok
}

// reply adds a reply: its code, and what the flags of the request ask for, in their order. The
// data follow if the code is VA. It reports whether the connection stays.
func (m *meta) reply(code string, it *item, marks string) bool {
	out := append(m.io.Out, code...)
	if code == "VA" {
		out = append(out, ' ')
		out = strconv.AppendInt(out, int64(len(it.data)), 10)
	}
	for _, flag := range m.flags {
		out = m.appendFlag(out, flag, it)
	}
	m.io.Out = append(append(out, marks...), '\r', '\n')
	return code != "VA" || m.sayData(it.data) && m.sayEnd()
}

// appendFlag adds what a flag asks for. it is nil if there is no item.
func (m *meta) appendFlag(out []byte, flag []byte, it *item) []byte {
	switch letter := flag[0]; letter {
	case 'O':
		return append(append(out, ' '), flag...)
	case 'k':
		return append(append(out, " k"...), m.asSent...)
	case 'b':
		return append(out, " b"...)
	case 'f', 's', 't', 'c':
		if it == nil || len(flag) > 1 {
			return out
		}
		return strconv.AppendInt(append(out, ' ', letter), m.describe(letter, it), 10)
	}
	return out
}

// describe returns the number that a flag without a token asks for.
func (m *meta) describe(letter byte, it *item) int64 {
	switch letter {
	case 'f':
		return int64(it.flags)
	case 's':
		return int64(len(it.data))
	case 't':
		return m.ttl(it.xt)
	}
	return int64(it.version) // at most 53 bits
}

// metaNoop serves "mn".
func metaNoop(c *conn) bool {
	c.say("MN")
	return true
}

// failAloud answers an error, also to a quiet command.
func (m *meta) failAloud(call string, err error) {
	m.conn.quiet = false
	m.fail(call, err)
}

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
	case errors.Is(err, dberr.ErrNoRecord):
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

// additionOf reads the flags of ma.
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
