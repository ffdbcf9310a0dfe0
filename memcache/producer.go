package memcache

import (
	"bytes"
	"errors"
	"fmt"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// put stores a message.
func (q *queues) put(p *db.Pending, name, value []byte, xt record.XT) error {
	for {
		newest, err := q.newest(name)
		if err != nil {
			return err
		}
		err = q.db.Add(p, q.messageKey(name, newest), value, xt)
		if !errors.Is(err, dberr.ErrDuplicate) { // somebody else has used the key
			return err
		}
	}
}

// newest returns the greatest stamp of a name, for messageKey. It searches the database once for
// each name that is remembered, and each time for others, and where other servers store messages.
func (q *queues) newest(name []byte) (stamp, error) {
	q.mu.Lock()
	l := q.lines[string(name)]
	if l == nil && len(q.lines) < maxLines {
		l = &line{}
		q.lines[string(name)] = l
	}
	var floor []byte // what is there before it was seen
	if l != nil && l.known {
		if !q.others.are {
			defer q.mu.Unlock()
			return l.newest, nil
		}
		floor = keyOf(name, l.newest)
	}
	backs := q.backs
	q.mu.Unlock()
	// Messages that come during the search are reported to arrived, those that come back to undone.
	found, err := q.greatest(name, floor)
	if err != nil || l == nil {
		return found, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l.raise(found)
	l.known = q.backs == backs
	return l.newest, nil
}

// greatest finds the greatest stamp of a name in the database, if it is not before floor.
func (q *queues) greatest(name, floor []byte) (greatest stamp, err error) {
	prefix := append(bytes.Clone(name), ' ')
	behindDigits := append(bytes.Clone(prefix), '9'+1)
	err = q.db.KeysBefore(behindDigits, floor, prefix, func(key []byte) bool {
		greatest = stampOf(key[len(name):])
		return greatest == stamp{} // a key without a stamp: look further
	})
	return greatest, err
}

// messageKey returns the key of a new message. Its stamp is greater than newest.
func (q *queues) messageKey(name []byte, newest stamp) []byte {
	now := max(q.now().UnixMilli(), q.logged())
	q.mu.Lock()
	defer q.mu.Unlock()
	now = max(now, q.last)
	if q.next == 0 && now == q.last {
		now++
	}
	q.last = now
	s := stamp{now, q.next}
	q.next = (q.next + 1) % sequenceEnd
	if l := q.lines[string(name)]; l != nil && newest.less(l.newest) {
		newest = l.newest // from another producer
	}
	if !newest.less(s) {
		s = newest.after(s.sequence)
	}
	if l := q.lines[string(name)]; l != nil {
		l.raise(s)
	}
	return keyOf(name, s)
}

// keyOf returns the key of a message.
func keyOf(name []byte, s stamp) []byte {
	return fmt.Appendf(bytes.Clone(name), " %0*d %04d", timeDigits, s.milliseconds, s.sequence)
}

// logged returns the time of the newest update in the log, in milliseconds.
func (q *queues) logged() int64 {
	if at, ok := q.db.Logged(); ok {
		return at.UnixMilli()
	}
	return 0
}
