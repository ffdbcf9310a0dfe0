package load

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
)

// Distributions are the ways to choose keys.
func Distributions() []string { return []string{"uniform", "zipf", "sequential"} }

// zipfSkew makes the most frequent of a million keys a tenth of all requests, as in many caches.
const zipfSkew = 1.1

// chooser chooses what a connection does next.
type chooser struct {
	load *Load
	rnd  *rand.Rand
	zipf *rand.Zipf     // nil: another distribution
	turn *atomic.Uint64 // of all connections, for sequential keys
	sum  float64        // of the weights
	text string         // from which values are taken
	key  []byte         // room for the keys of a request
	ends []int          // ends of the keys in key
}

func newChooser(l *Load, seed uint64, turn *atomic.Uint64, text string) *chooser {
	c := &chooser{load: l, rnd: rand.New(rand.NewPCG(seed, 1)), turn: turn, text: text}
	if l.Keyed == "zipf" {
		c.zipf = rand.NewZipf(c.rnd, zipfSkew, 1, l.Keys-1)
	}
	for _, s := range l.Mix {
		c.sum += s.Weight
	}
	return c
}

// operation chooses the next operation.
func (c *chooser) operation() Operation {
	x := c.rnd.Float64() * c.sum
	for _, s := range c.load.Mix {
		if x -= s.Weight; x < 0 {
			return s.Operation
		}
	}
	return c.load.Mix[len(c.load.Mix)-1].Operation
}

// number chooses a key.
func (c *chooser) number() uint64 {
	switch {
	case c.zipf != nil:
		return scattered(c.zipf.Uint64(), c.load.Keys)
	case c.load.Keyed == "sequential":
		return (c.turn.Add(1) - 1) % c.load.Keys
	}
	return c.rnd.Uint64N(c.load.Keys)
}

// scattered puts the frequent keys of a Zipf distribution, which are the first, anywhere among all.
func scattered(n, keys uint64) uint64 {
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	n ^= n >> 33
	return n % keys
}

// request is what a protocol makes a message of. Its slices are valid until the next one.
type request struct {
	operation Operation
	keys      [][]byte
	value     string // of all records
}

// next chooses a request.
func (c *chooser) next(into *request) {
	into.operation = c.operation()
	n := 1
	if into.operation == SetBulk || into.operation == GetBulk {
		n = c.load.Bulk
	}
	c.begin()
	for range n {
		c.add(into.operation, c.number())
	}
	c.end(into)
}

// range of keys: a request for keys with these numbers.
func (c *chooser) keys(into *request, o Operation, family Operation, first, n uint64) {
	into.operation = o
	c.begin()
	for i := range n {
		c.add(family, first+i)
	}
	c.end(into)
}

func (c *chooser) begin() { c.key, c.ends = c.key[:0], c.ends[:0] }

// add adds a key. Counters have keys of their own, because a counter is no text.
func (c *chooser) add(o Operation, number uint64) {
	family := byte('k')
	if o == Increment {
		family = 'n'
	}
	const digits = "0000000000"
	c.key = append(append(c.key, c.load.Prefix...), family)
	var room [20]byte
	text := strconv.AppendUint(room[:0], number, 10)
	c.key = append(c.key, digits[:max(0, len(digits)-len(text))]...)
	c.key = append(c.key, text...)
	c.ends = append(c.ends, len(c.key))
}

func (c *chooser) end(into *request) {
	into.keys = into.keys[:0]
	begin := 0
	for _, end := range c.ends {
		into.keys = append(into.keys, c.key[begin:end:end])
		begin = end
	}
	size := c.load.Least
	if more := c.load.Most - c.load.Least; more > 0 {
		size += c.rnd.IntN(more + 1)
	}
	at := c.rnd.IntN(len(c.text) - size + 1)
	into.value = c.text[at : at+size]
}

// valueText returns a text of letters from which all values of a load are taken. It does not
// compress well.
func valueText(most int) string {
	const letters, spare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._", 64 << 10
	rnd := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.Grow(most + spare)
	for range most + spare {
		b.WriteByte(letters[rnd.IntN(len(letters))])
	}
	return b.String()
}
