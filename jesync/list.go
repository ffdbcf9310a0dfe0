package jesync

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// keyStatus is a key with its counts of one moment.
type keyStatus struct {
	name             string
	holders, waiters int
}

// statuses returns the keys in use.
func (t *table) statuses() []keyStatus {
	var all []keyStatus
	for i := range t.shards {
		sh := &t.shards[i]
		sh.mu.Lock()
		for _, k := range sh.keys {
			all = append(all, keyStatus{k.name, k.holders.n, k.waiting})
		}
		sh.mu.Unlock()
	}
	return all
}

// The orders of the status lists. Keys that are equal in it are in the order of their names.
func byKey(a, b keyStatus) int { return cmp.Compare(a.name, b.name) }

func byGrants(a, b keyStatus) int { return cmp.Or(b.holders-a.holders, byKey(a, b)) }

func byRequests(a, b keyStatus) int { return cmp.Or(b.waiters-a.waiters, byKey(a, b)) }

func (t *table) statusList(order func(a, b keyStatus) int) []keyStatus {
	all := t.statuses()
	slices.SortFunc(all, order)
	return all
}

// entry is a request of one moment.
type entry struct {
	name, address string
	state         state
	age           int64 // nanoseconds in that state
	left          int64 // nanoseconds until it expires or times out; never
	max           int32
	token         uint64
}

// entries returns the requests of a key, or of all keys in the order of their names if name is nil: holders in the order of
// their grants, then those that wait, in the order of their arrival.
func (t *table) entries(name []byte, now int64) []entry {
	var all []entry
	if name != nil {
		return t.shard(name).entries(all, name, now)
	}
	for i := range t.shards {
		all = t.shards[i].entries(all, nil, now)
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return all
}

func (sh *shard) entries(all []entry, name []byte, now int64) []entry {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if name != nil {
		if k := sh.keys[string(name)]; k != nil {
			all = k.entries(all, now)
		}
		return all
	}
	for _, k := range sh.keys {
		all = k.entries(all, now)
	}
	return all
}

func (k *key) entries(all []entry, now int64) []entry {
	for r := k.holders.first; r != nil; r = r.next {
		all = append(all, r.entry(now))
	}
	for _, r := range k.queued() {
		all = append(all, r.entry(now))
	}
	return all
}

func (r *request) entry(now int64) entry {
	e := entry{name: r.key.name, address: r.session.address, state: r.state, age: now - r.since, left: never, max: r.max, token: r.token}
	if r.when != never {
		e.left = max(0, r.when-now)
	}
	return e
}

func appendEntry(dst []byte, e entry) []byte {
	word := wordHolder
	if e.state == waiting {
		word = wordWaiter
	}
	dst = append(append(append(dst, word...), ' '), e.name...)
	dst = append(append(dst, ' '), e.address...)
	dst = appendSeconds(append(dst, ' '), e.age)
	dst = appendSeconds(append(dst, ' '), e.left)
	dst = strconv.AppendInt(append(dst, ' '), int64(e.max), 10)
	if e.state == holding {
		dst = strconv.AppendUint(append(dst, ' '), e.token, 10)
	}
	return append(dst, '\n')
}

// appendSeconds writes nanoseconds as seconds with three decimals, and never as -1.
func appendSeconds(dst []byte, ns int64) []byte {
	if ns == never {
		return append(dst, "-1"...)
	}
	return strconv.AppendFloat(dst, float64(ns)/float64(second), 'f', 3, 64)
}

// statusList answers one of the status lists. Nothing marks its end.
func (c *conn) statusList(order func(a, b keyStatus) int) error {
	if err := c.beginList(); err != nil {
		return err
	}
	defer c.endList()
	for _, k := range c.server.table.statusList(order) {
		c.mu.Lock()
		c.lines = appendReply(c.lines, k.name, reply{word: wordStatus, holders: k.holders, waiters: k.waiters})
		c.mu.Unlock()
		if err := c.flushLarge(); err != nil {
			return err
		}
	}
	return nil
}

// list answers with the requests of a key, or of all keys.
func (c *conn) list(cmd *command) error {
	if err := c.beginList(); err != nil {
		return err
	}
	defer c.endList()
	var name []byte
	if cmd.n > 0 {
		name = bytes.Clone(cmd.words[0]) // the buffer may move; not nil
	}
	for _, e := range c.server.table.entries(name, c.server.now()) {
		c.mu.Lock()
		c.lines = appendEntry(c.lines, e)
		c.mu.Unlock()
		if err := c.flushLarge(); err != nil {
			return err
		}
	}
	c.say(wordEnd)
	return nil
}

// beginList waits until there are not too many lists in memory at once: a list is made as a whole, and kept until its client has
// read it.
func (c *conn) beginList() error {
	c.step.deliver()
	select {
	case c.server.lists <- struct{}{}:
		return nil
	default:
	}
	if err := c.flush(); err != nil { // do not let earlier replies wait
		return err
	}
	select {
	case c.server.lists <- struct{}{}:
		return nil
	case <-c.server.quit:
		return errStopped
	}
}

func (c *conn) endList() { <-c.server.lists }
