package memcache

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// The key of a message is its queue's name and its stamp, and messages come out in the order of
// their keys:
//
//	mail 01780000000000 0042
//	NAME MILLISECONDS   SEQUENCE
//
// A producer relies on messages coming out in the order in which they were acknowledged, whatever
// happens to the clock. So a new stamp is greater than
//
//   - every stamp that this process has given out;
//   - the time stamp of the newest update in the log. The log's stamps only grow, also across
//     restarts, and they are above those of updates that came by replication;
//   - every message of the same name in the database. Nothing else knows these messages if there is
//     no log, if a snapshot was restored, or if messages were stored over HTTP.
//
// A queue with a message far ahead of the clock therefore continues from that message's time, until
// the queue is empty and the server has restarted. Other queues are not affected.
type stamp struct {
	milliseconds int64
	sequence     int
}

const (
	sequenceEnd = 10_000
	timeDigits  = 14
	stampLen    = len(" 01780000000000 0042")

	// lastTime is the greatest time of a stamp. A key with a greater time was not made by a server,
	// and is not taken for a stamp: none could follow it.
	lastTime = 99_999_999_999_999 - 1<<32
)

func (s stamp) less(t stamp) bool {
	return s.milliseconds < t.milliseconds || s.milliseconds == t.milliseconds && s.sequence < t.sequence
}

// after returns the first stamp behind s with this sequence number.
func (s stamp) after(sequence int) stamp {
	if sequence <= s.sequence {
		s.milliseconds++
	}
	return stamp{s.milliseconds, sequence}
}

// stampOf reads the stamp behind the name in a key. Anything else than an exact stamp is the zero
// stamp.
func stampOf(text []byte) stamp {
	if len(text) != stampLen || text[0] != ' ' || text[1+timeDigits] != ' ' {
		return stamp{}
	}
	ms, err := strconv.ParseUint(string(text[1:1+timeDigits]), 10, 63)
	sequence, err2 := strconv.ParseUint(string(text[2+timeDigits:]), 10, 31)
	if err != nil || err2 != nil || ms > lastTime {
		return stamp{}
	}
	return stamp{int64(ms), int(sequence)}
}

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
// each name that is remembered, and each time for others.
func (q *queues) newest(name []byte) (stamp, error) {
	q.mu.Lock()
	l := q.lines[string(name)]
	if l == nil && len(q.lines) < maxLines {
		l = &line{}
		q.lines[string(name)] = l
	}
	if l != nil && l.known {
		defer q.mu.Unlock()
		return l.newest, nil
	}
	backs := q.backs
	q.mu.Unlock()
	// Messages that come during the search are reported to arrived, those that come back to undone.
	found, err := q.greatest(name)
	if err != nil || l == nil {
		return found, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l.raise(found)
	l.known = q.backs == backs
	return l.newest, nil
}

// greatest finds the greatest stamp of a name in the database.
func (q *queues) greatest(name []byte) (greatest stamp, err error) {
	prefix := append(bytes.Clone(name), ' ')
	behindDigits := append(bytes.Clone(prefix), '9'+1)
	err = q.db.KeysBefore(behindDigits, prefix, func(key []byte) bool {
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
	return fmt.Appendf(bytes.Clone(name), " %0*d %04d", timeDigits, s.milliseconds, s.sequence)
}

// logged returns the time of the newest update in the log, in milliseconds.
func (q *queues) logged() int64 {
	if at, ok := q.db.Logged(); ok {
		return at.UnixMilli()
	}
	return 0
}

// raise notes that a line has had a message with this stamp.
func (l *line) raise(s stamp) {
	if l.newest.less(s) {
		l.newest = s
	}
}
