package memcache

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gotycoon/access"
	"gotycoon/db"
)

const (
	maxLines = 10_000      // names remembered although nobody waits for their messages
	lookAnew = time.Second // how often what is remembered of a name is checked
)

// queues are the messages of a database by name. A message is a record whose key is the name and its stamp (message.go); a fetched one
// is claimed (db.Claim) until it is deleted.
//
// Who wants a message of a name stands in the name's line, and only the first of the line looks into the database: so messages are
// given out in the order of the requests. Whoever leaves a line wakes the next, and every message that arrives wakes the
// first, so nobody sleeps while there is a message.
type queues struct {
	db *db.DB

	now func() time.Time

	mu    sync.Mutex // protects the fields below; the database is not used under it
	lines map[string]*line
	next  int   // sequence number of the next key, whatever its name
	last  int64 // milliseconds of the newest key
}

// line is what is remembered of one name: who waits for its messages, and where they begin and end. Guarded by queues.mu.
type line struct {
	waiters []*waiter
	from    []byte    // there is no message before this key
	news    uint64    // messages that have arrived; what was found out before is void
	looked  time.Time // when the database was last searched from the beginning

	known  bool  // newest has been looked up in the database
	newest stamp // no message has a greater one
}

// waiter is one request in a line. poke has room for one, so that nothing is lost while it is awake.
type waiter struct{ poke chan struct{} }

func (w *waiter) wake() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

func newQueues(d *db.DB) *queues {
	return &queues{db: d, now: time.Now, lines: map[string]*line{}}
}

// arrived is told of every record that is stored or given back, by anybody. A name may have blanks in it.
func (q *queues) arrived(key []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines) == 0 {
		return
	}
	for i, b := range key {
		if b != ' ' {
			continue
		}
		l := q.lines[string(key[:i])]
		if l == nil {
			continue
		}
		l.news++
		l.raise(stampOf(key[i:]))
		if bytes.Compare(key, l.from) < 0 {
			l.from = bytes.Clone(key)
		}
		l.wakeFirst()
	}
}

func (l *line) wakeFirst() {
	if len(l.waiters) > 0 {
		l.waiters[0].wake()
	}
}

// take claims the oldest message of a name, and waits for one until the deadline. It returns db.ErrNoRecord when none has come.
func (q *queues) take(ctx context.Context, p *db.Pending, name []byte, deadline time.Time) (*db.Claim, error) {
	w := &waiter{poke: make(chan struct{}, 1)}
	l := q.join(string(name), w)
	defer q.leave(string(name), l, w)
	limit := time.NewTimer(time.Until(deadline))
	defer limit.Stop()
	for {
		if q.first(l, w) {
			claim, err := q.claim(p, l, name)
			if !errors.Is(err, db.ErrNoRecord) {
				return claim, err
			}
		}
		select {
		case <-w.poke:
			continue
		default:
		}
		select {
		case <-w.poke:
		case <-limit.C:
			return q.claim(p, l, name) // every key is tried at least once, also behind others
		case <-ctx.Done():
			return nil, db.ErrNoRecord
		}
	}
}

func (q *queues) join(name string, w *waiter) *line {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[name]
	if l == nil {
		l = &line{}
		q.lines[name] = l
	}
	l.waiters = append(l.waiters, w)
	return l
}

func (q *queues) leave(name string, l *line, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(l.waiters, w)
	l.waiters = slices.Delete(l.waiters, i, i+1)
	if len(l.waiters) == 0 && len(q.lines) > maxLines {
		delete(q.lines, name)
	}
	l.wakeFirst()
}

func (q *queues) first(l *line, w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return l.waiters[0] == w
}

// claim claims the first message of a line, and remembers that there is none before it.
func (q *queues) claim(p *db.Pending, l *line, name []byte) (*db.Claim, error) {
	prefix := append(bytes.Clone(name), ' ')
	from, news := q.startOf(l)
	claim, err := q.db.Claim(p, prefix, from)
	if claim != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		if l.news == news {
			l.from = claim.Key
		}
	}
	return claim, err
}

// startOf returns where the search for a line's first message begins. Now and then that is the beginning: records can also come
// back because a transaction was aborted, of which nobody is told.
func (q *queues) startOf(l *line) (from []byte, news uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := time.Now(); now.Sub(l.looked) > lookAnew {
		l.looked = now
		return nil, l.news
	}
	return l.from, l.news
}

// getMessages serves "get NAME..." of a queue. The deadline is one for all names.
func (c *conn) getMessages() bool {
	if c.io.Flush() != nil { // earlier replies do not wait for messages
		return false
	}
	deadline := c.deadline()
	for _, name := range c.words[1:] {
		it, err := c.fetchMessage(name, deadline)
		switch {
		case err == nil:
			if !c.sayValue(&it) {
				return false
			}
		case errors.Is(err, db.ErrNoRecord):
		default:
			c.fail("get", err)
			return true
		}
	}
	c.say("END")
	return true
}

// fetchMessage claims a message. The caller has sent earlier replies.
func (c *conn) fetchMessage(name []byte, deadline time.Time) (item, error) {
	before := c.io.Owed.Taken()
	claim, err := c.s.queues.take(c.ctx, &c.io.Owed, name, deadline)
	c.io.Meter.Restart()
	c.io.Owed.GiveBack(before) // the claim keeps it
	if err == nil {
		err = c.mayTake(name, claim)
	}
	if err == nil {
		err = c.keep(claim)
	}
	c.s.counts.get.count(err == nil)
	if err != nil {
		return item{}, err
	}
	if c.claims == nil {
		c.claims = map[string][]*db.Claim{}
	}
	c.claims[string(name)] = append(c.claims[string(name)], claim)
	it := item{key: name, xt: db.MaxXT}
	it.data, it.flags = c.decode(claim.Value)
	return it, nil
}

// claimCost is what a claim takes beside its record.
const claimCost = 256

// keep counts a claim until it is finished. One for which there is no memory goes back.
func (c *conn) keep(claim *db.Claim) error {
	err := c.io.Keep(costOf(claim))
	if err == nil {
		return nil
	}
	return errors.Join(err, claim.GiveBack(nil))
}

func costOf(claim *db.Claim) int { return claimCost + len(claim.Key) + len(claim.Value) }

// mayTake looks once more at the right to read, since the client may have waited long for the message. One that it may not have goes back.
func (c *conn) mayTake(name []byte, claim *db.Claim) error {
	err := c.io.Visitor.Key(access.Read, c.db, name)
	if err == nil {
		return nil
	}
	return errors.Join(err, claim.GiveBack(nil))
}

// finish deletes the oldest message of a name that this connection has fetched.
func (c *conn) finish(name []byte) error {
	fetched := c.claims[string(name)]
	if len(fetched) == 0 {
		return db.ErrNoRecord
	}
	if err := fetched[0].Finish(&c.io.Owed); err != nil {
		return err
	}
	_ = c.io.Keep(-costOf(fetched[0])) // giving back never fails
	if len(fetched) == 1 {
		delete(c.claims, string(name))
	} else {
		c.claims[string(name)] = fetched[1:]
	}
	return nil
}

// giveBack makes the messages that have not been deleted visible again, at the end of the connection.
func (c *conn) giveBack() {
	for _, fetched := range c.claims {
		for _, claim := range fetched {
			if err := claim.GiveBack(nil); err != nil {
				c.s.logFailure(err)
			}
		}
	}
	c.claims = nil
}
