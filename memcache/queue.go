package memcache

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gotycoon/db"
	"gotycoon/db/dberr"
)

const (
	maxLines = 10_000      // above this number, names without waiters are forgotten
	lookAnew = time.Second // how often a line is searched from its beginning
)

// queues holds the messages of a database by name. A message is a record whose key is the name and
// a stamp (message.go). A fetched message is claimed (db.Claim) until it is deleted.
//
// Messages must be given out in the order of the requests, and no request may sleep while there is
// a message for it. So each name has a line of waiting requests, and only the first request of a
// line searches the database. A message that arrives wakes the first request of its line, and a
// request that leaves the line wakes the first of those that remain. Without the second rule a
// message could arrive for a request that is just leaving, and nobody would fetch it. An aborted
// transaction may bring back any message: it wakes the first request of every line, and the lines
// forget what they know of their messages.
type queues struct {
	db     *db.DB
	others others // servers that have the same messages

	now func() time.Time

	mu    sync.Mutex // protects the fields below; the database is not used under it
	lines map[string]*line
	next  int    // sequence number of the next key, whatever its name
	last  int64  // milliseconds of the newest key
	backs uint64 // count of calls of undone
}

// line is what is known of one name: the waiting requests, and where its messages begin and end.
// queues.mu protects it.
type line struct {
	waiters []*waiter
	from    []byte    // no message has a key before it
	news    uint64    // count of arrived messages; a search that began before the last is void
	looked  time.Time // when the database was last searched from the beginning

	known  bool  // newest has been looked up in the database
	newest stamp // no message has a greater stamp
}

// waiter is a request in a line. poke has room for one element: a wake-up that comes while the
// request is searching is not lost, and it searches again.
type waiter struct{ poke chan struct{} }

func (w *waiter) wake() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

func newQueues(d *db.DB) *queues {
	q := &queues{db: d, now: d.Clock, lines: map[string]*line{}}
	q.others.db, q.others.are = d, d.Info().Shared
	q.others.waited, q.others.found = q.waited, q.found
	return q
}

// arrived is called for every record that anybody stores or gives back. A queue's name may have
// blanks, so each blank of the key may be the end of the name, and arrived looks for a line at each
// of them.
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

// undone is called when a transaction has been aborted: messages that it had removed are back.
func (q *queues) undone() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backs++
	for _, l := range q.lines {
		l.news++
		l.from, l.known = nil, false
		l.wakeFirst()
	}
}

// waited returns the names for whose messages requests wait.
func (q *queues) waited() (names []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name, l := range q.lines {
		if len(l.waiters) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// found is called when there is a message of a name, perhaps another server's.
func (q *queues) found(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[name]; l != nil {
		l.news++
		l.wakeFirst()
	}
}

func (l *line) wakeFirst() {
	if len(l.waiters) > 0 {
		l.waiters[0].wake()
	}
}

// take claims the oldest message of a name. It waits until the deadline for a message, and returns
// dberr.ErrNoRecord if none has come. heed ends a search that takes long.
func (q *queues) take(ctx context.Context, heed db.Heed, p *db.Pending, name []byte, deadline time.Time) (*db.Claim, error) {
	w := &waiter{poke: make(chan struct{}, 1)}
	l := q.join(string(name), w)
	defer q.leave(string(name), l, w)
	limit := time.NewTimer(time.Until(deadline))
	defer limit.Stop()
	waits := false
	for {
		if q.first(l, w) {
			claim, err := q.claim(heed, p, l, name)
			if !errors.Is(err, dberr.ErrNoRecord) {
				return claim, err
			}
		}
		select {
		case <-w.poke:
			continue
		default:
		}
		if !waits {
			waits = true
			q.others.await()
			defer q.others.awaitNoMore()
		}
		select {
		case <-w.poke:
		case <-limit.C:
			// Also a request that is not the first of its line searches at least once.
			return q.claim(heed, p, l, name)
		case <-ctx.Done():
			return nil, dberr.ErrNoRecord
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

// claim claims the first message of a line and notes in the line that no earlier message is left.
// If another message has arrived meanwhile, it may be an earlier one, and the line stays as it was.
func (q *queues) claim(heed db.Heed, p *db.Pending, l *line, name []byte) (*db.Claim, error) {
	prefix := append(bytes.Clone(name), ' ')
	from, news := q.startOf(l)
	claim, err := q.db.Claim(heed, p, prefix, from)
	if q.others.are && from != nil && errors.Is(err, dberr.ErrNoRecord) { // theirs may be before it
		claim, err = q.db.Claim(heed, p, prefix, nil)
	}
	if claim != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		if l.news == news {
			l.from = claim.Key
		}
	}
	return claim, err
}

// startOf returns the key at which the search for a line's first message begins. Once in lookAnew
// the search begins at the beginning of the line, because an expired message lives again when the
// clock is set back, and other servers give messages back.
func (q *queues) startOf(l *line) (from []byte, news uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := time.Now(); now.Sub(l.looked) > lookAnew {
		l.looked = now
		return nil, l.news
	}
	return l.from, l.news
}

// raise notes that a line has had a message with this stamp.
func (l *line) raise(s stamp) {
	if l.newest.less(s) {
		l.newest = s
	}
}
