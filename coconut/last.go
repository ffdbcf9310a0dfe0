package coconut

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"gotycoon/db"
)

// A call changes the state of a quota, journals and the record of its id in one commit. Another server receives these records one after the
// other: when it becomes the primary it may have got only the first of them. That is the state, which therefore says what the others are. Who
// repeats a call under its id then finds that it was carried out, and what was taken can be given back.
//
//	CALL EXPIRES LF REPLY LF ID
//
// EXPIRES is the second in which the record of the id does. An empty ID is none.

// appendLast appends the call to the record of the state that it has led to.
func appendLast(value []byte, c *call, reply []byte, now time.Time) []byte {
	value = fmt.Appendf(value, "\n%s %d\n%s\n", c, now.Add(idLifetime).Unix(), reply)
	return append(value, c.id...)
}

// last is the last call of a quota.
type last struct {
	call    call
	reply   []byte
	expires int64
}

// parseLast takes the record of a state apart; nil: its last call had no other records.
func parseLast(value []byte) (*last, error) {
	_, text, ok := bytes.Cut(value, []byte("\n"))
	if !ok || len(text) == 0 {
		return nil, nil //nolint:nilnil // there is none
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

// complete stores the records of the last call that have not come to this server.
func (r *records) complete(q *quota) error {
	value, err := r.get(quotaKey(q.name, "state"))
	if err != nil {
		return err
	}
	l, err := parseLast(value)
	if l == nil || err != nil {
		return wrapDamage(q.name, err)
	}
	recs, err := r.lacking(q, l)
	if len(recs) == 0 || err != nil {
		return err
	}
	_, err = r.db.SetBulk(nil, recs, true)
	return err
}

func wrapDamage(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the record of quota %q: %w", name, err)
}

// lacking returns the records of a call that are not there.
func (r *records) lacking(q *quota, l *last) (recs []db.Record, err error) {
	if len(l.call.id) > 0 && l.expires > time.Now().Unix() {
		known, err := r.get(q.idKey(&l.call))
		if err != nil {
			return nil, err
		}
		if known == nil {
			id := q.idRecord(&l.call, l.reply)
			id.XT = db.XT(-l.expires)
			recs = append(recs, id)
		}
	}
	number, ok := journalOf(l)
	if !ok {
		return recs, nil
	}
	known, err := r.get(journalKey(q.name, number))
	switch {
	case err != nil || known != nil && l.call.word == "apply":
		return recs, err
	case l.call.word == "apply":
		return append(recs, applyRecord(q.name, number, journal{amount: l.call.number})), nil
	}
	applied := uint64(l.call.number)
	j, found, err := r.journal(q.name, applied)
	if err != nil {
		return nil, err
	}
	if found && j.cancelled == 0 {
		j.cancelled = number
		recs = append(recs, applyRecord(q.name, applied, j))
	}
	if known == nil {
		recs = append(recs, cancelRecord(q.name, number, applied))
	}
	return recs, nil
}

// journalOf returns the number that a call was given, if it was given one.
func journalOf(l *last) (number uint64, ok bool) {
	if l.call.word != "apply" && l.call.word != "cancel" {
		return 0, false
	}
	first, _, _ := bytes.Cut(l.reply, []byte(" "))
	number, err := strconv.ParseUint(string(first), 10, 64)
	return number, err == nil && number > 0
}
