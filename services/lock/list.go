package lock

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"unsafe"

	"gotycoon/internal/netio"
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

// The orders of the status lists. Keys with equal counts are in the order of their names.
func byKey(a, b keyStatus) int { return cmp.Compare(a.name, b.name) }

func byGrants(a, b keyStatus) int { return cmp.Or(b.holders-a.holders, byKey(a, b)) }

func byRequests(a, b keyStatus) int { return cmp.Or(b.waiters-a.waiters, byKey(a, b)) }

func (t *table) statusList(order func(a, b keyStatus) int) []keyStatus {
	all := t.statuses()
	slices.SortFunc(all, order)
	return all
}

// entry is a copy of a request, made under the mutex of its shard.
type entry struct {
	name, address string
	state         state
	age           int64 // nanoseconds in that state
	left          int64 // nanoseconds until it expires or times out, or never
	max           int32
	token         uint64
}

// entries returns the requests of a key, or of all keys in the order of their names if name is nil.
// Holders come first, in the order of their grants, then waiting requests, in the order of their
// arrival.
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

// appendSeconds writes nanoseconds as seconds with three decimals; never is written as -1.
func appendSeconds(dst []byte, ns int64) []byte {
	if ns == never {
		return append(dst, "-1"...)
	}
	return strconv.AppendFloat(dst, float64(ns)/float64(second), 'f', 3, 64)
}

// statusList answers one of the status lists. Nothing marks its end.
func (c *conn) statusList(order func(a, b keyStatus) int) error {
	return sendList(c, func() []keyStatus { return c.server.table.statusList(order) }, func(dst []byte, k keyStatus) []byte {
		return appendReply(dst, k.name, reply{word: wordStatus, holders: k.holders, waiters: k.waiters})
	}, "")
}

// list answers with the requests of a key, or of all keys.
func (c *conn) list(cmd *command) error {
	var name []byte
	if cmd.n > 0 {
		name = bytes.Clone(cmd.words[0]) // a copy, since the buffer may move; not nil
	}
	return sendList(c, func() []entry { return c.server.table.entries(name, c.server.now()) }, appendEntry, wordEnd)
}

// sendList builds a list in memory and then sends it, followed by the line last if that is not
// empty. The list counts as a large reply (netio.Limits) while the client reads it. Nobody waits
// for the client; a list for which there is no memory is refused.
func sendList[T any](c *conn, build func() []T, appendLine func([]byte, T) []byte, last string) error {
	c.step.deliver() // other sessions' lines must not wait for the list
	all, err := buildList(c, build)
	if err != nil {
		return err
	}
	size := cap(all) * int(unsafe.Sizeof(*new(T)))
	if c.in.Hold(size) != nil {
		c.say(tooManyLists)
		return nil
	}
	defer c.in.LetGo(size)
	for _, e := range all {
		c.session.say(func(lines []byte) []byte { return appendLine(lines, e) })
		if err := c.flushLarge(); err != nil {
			return err
		}
	}
	if last != "" {
		c.say(last)
	}
	return nil
}

// buildList builds a list. At most maxLists are built at the same time, since each looks at all
// keys.
func buildList[T any](c *conn, build func() []T) ([]T, error) {
	select {
	case c.server.lists <- struct{}{}:
	default:
		if err := c.flush(); err != nil { // earlier replies must not wait
			return nil, err
		}
		c.in.Leave()
		select {
		case c.server.lists <- struct{}{}:
		case <-c.server.quit:
			return nil, netio.ErrStopped
		}
	}
	defer func() { <-c.server.lists }()
	return build(), nil
}
