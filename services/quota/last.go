package quota

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"gotycoon/db/record"
)

// The last call of a quota.
//
// Problem. A call writes up to three kinds of records: the state of the quota, one or two journals,
// and the reply under the id of the call. They are one group of the log of this server, so a crash
// leaves all or none of them here. But a follower receives the records of a group one after the
// other. It may become the primary with only the first of them, and the call must still be whole:
//
//   - a client that repeats the call under its id must get the old reply; without the reply's
//     record the amount would be taken twice
//   - the amount taken must have a journal; without the journal the client could not cancel
//
// Rule. The record of the state comes first in the group, and also says what the other records of
// the call are:
//
//	STATE LF CALL EXPIRES LF REPLY LF ID
//
// EXPIRES is the Unix second in which the record of the reply expires. ID is empty, and EXPIRES is
// 0, for a call without an id. In each term, a server completes the last call before its first call
// (quota.lead): it stores the records that it lacks. Calls before the last one are whole, because
// the follower has received their groups to the end.
//
// Example. At the second 1700000000, "apply 10" under the id "abc" on a new quota of 100 stores
//
//	state       90 1 1 LF apply 10 1700086400 LF 1 90 LF abc
//	journal 1   10
//	id abc      apply 10 LF 1 90
//
// A follower that has received the state only makes the other two records from it.
//
// A call that writes no record besides the state is whole with it; the state is stored without the
// lines behind STATE.

// appendLast appends what the other records of a call are to the record of its state.
func appendLast(value []byte, c *call, reply []byte) []byte {
	expires := int64(0)
	if len(c.id) > 0 {
		expires = time.Now().Add(idLifetime).Unix()
	}
	value = append(c.append(append(value, '\n')), ' ')
	value = append(strconv.AppendInt(value, expires, 10), '\n')
	return append(append(append(value, reply...), '\n'), c.id...)
}

// last is the last call of a quota, as the record of the quota's state tells it.
type last struct {
	call    call
	reply   []byte
	expires int64
}

// parseLast reads the last call in a state record. It returns nil if that call had no other
// records.
func parseLast(value []byte) (*last, error) {
	_, text, ok := bytes.Cut(value, []byte("\n"))
	if !ok || len(text) == 0 {
		return nil, nil // there is none
	}
	parts := bytes.SplitN(text, []byte("\n"), 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("the last call %q in it is damaged", text)
	}
	l := &last{reply: parts[1]}
	l.call.id = parts[2]
	if _, err := fmt.Sscanf(string(parts[0]), "%s %d %d", &l.call.word, &l.call.number, &l.expires); err != nil {
		return nil, fmt.Errorf("the last call %q in it is damaged: %w", text, err)
	}
	return l, nil
}

// complete stores those records of the last call that this server has not received.
func (r *records) complete(q *quota) error {
	value, err := r.Value(quotaKey(q.name, "state"))
	if err != nil {
		return err
	}
	l, err := parseLast(value)
	if l == nil || err != nil {
		return wrapDamage(q.name, err)
	}
	if err := r.lacking(q, l); err != nil {
		return err
	}
	recs := l.call.group.all()
	if len(recs) == 0 {
		return nil
	}
	_, err = r.SetBulk(nil, recs, true)
	return err
}

func wrapDamage(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the record of quota %q: %w", name, err)
}

// lacking adds those records of the last call that are not in the database to the call's group. The
// journal that is there may be an older one, of a round that has come in part (round.go).
func (r *records) lacking(q *quota, l *last) error {
	g := &l.call.group
	g.begin()
	if len(l.call.id) > 0 && l.expires > time.Now().Unix() {
		known, err := r.Value(q.idKey(&l.call))
		if err != nil {
			return err
		}
		if known == nil {
			g.reply(q, &l.call, l.reply, record.XT(-l.expires)) // negative: a moment, not a lifetime
		}
	}
	number, ok := journalOf(l)
	if !ok {
		return nil
	}
	known, err := r.Value(journalKey(q.name, number))
	if err != nil {
		return err
	}
	if l.call.word == "apply" {
		j := journal{amount: l.call.number}
		if !bytes.Equal(known, j.append(nil)) {
			g.apply(q.name, number, j)
		}
		return nil
	}
	applied := uint64(l.call.number)
	j, found, err := r.journal(q.name, applied)
	if err != nil {
		return err
	}
	if found && j.cancelled == 0 {
		j.cancelled = number
		g.apply(q.name, applied, j)
	}
	if !bytes.Equal(known, appendCancel(nil, applied)) {
		g.cancel(q.name, number, applied)
	}
	return nil
}

// journalOf returns the journal number in the reply to a call. ok is false for a call without a
// journal: other words, and calls that were refused.
func journalOf(l *last) (number uint64, ok bool) {
	if l.call.word != "apply" && l.call.word != "cancel" {
		return 0, false
	}
	first, _, _ := bytes.Cut(l.reply, []byte(" "))
	number, err := strconv.ParseUint(string(first), 10, 64)
	return number, err == nil && number > 0
}
