package quota

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"time"

	"gotycoon/services/internal/webport"
)

// The records of the services' database that belong to quotas. They are text, to be read and mended
// with the usual tools; journal numbers in keys are 8 bytes, big-endian, so that keys sort by
// number.
//
//	key                                value
//	"quota" 00 NAME 00 "state"         REMAINING JOURNAL OPEN ...
//	"quota" 00 NAME 00 "journal" 00 N  AMOUNT [CANCELJOURNAL]      an apply
//	"quota" 00 NAME 00 "journal" 00 N  - CANCELLED                 a cancel
//	"quota" 00 NAME 00 "id" 00 ID      CALL LF REPLY               expires after a day
//
// JOURNAL is the last journal number, OPEN is 0 or 1; last.go draws what follows. Only the primary
// writes these records (package leader).
type records struct {
	webport.Records
	groups sync.Pool // of *group, for rounds
}

// newGroup takes an empty group from the pool.
func (r *records) newGroup() *group {
	g, ok := r.groups.Get().(*group)
	if !ok {
		g = new(group)
	}
	g.begin()
	return g
}

// Vital reports whether a record of the services' database is stored even when the disk is nearly
// full. Bounds and claims are: they are few and small. Records of quotas are not: every call adds
// some.
func Vital(key []byte) bool { return !bytes.HasPrefix(key, []byte(quotaPrefix)) }

// quotaPrefix begins the keys of quotas.
const quotaPrefix = "quota\x00"

// idLifetime is how long a repeated quota call is recognised.
const idLifetime = 24 * time.Hour

func quotaKey(name, part string) []byte { return appendKey(nil, name, part) }

func appendKey(dst []byte, name, part string) []byte {
	return append(append(append(append(dst, quotaPrefix...), name...), 0), part...)
}

func journalKey(name string, number uint64) []byte { return appendJournalKey(nil, name, number) }

func appendJournalKey(dst []byte, name string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(appendKey(dst, name, "journal\x00"), number)
}

// state returns the recorded state of a quota; known is false for a new quota.
func (r *records) state(name string) (s state, known bool, err error) {
	value, err := r.Value(quotaKey(name, "state"))
	if err != nil || value == nil {
		return s, false, err
	}
	var open int
	if _, err := fmt.Sscanf(string(value), "%d %d %d", &s.remaining, &s.journal, &open); err != nil {
		return s, false, fmt.Errorf("the record of quota %q is damaged: %w", name, err)
	}
	s.open = open != 0
	return s, true, nil
}

// journal is an apply: its amount, and the journal number of its cancel, 0 if there is none.
type journal struct {
	amount    int64
	cancelled uint64
}

// append appends the value of the journal's record.
func (j journal) append(dst []byte) []byte {
	dst = strconv.AppendInt(dst, j.amount, 10)
	if j.cancelled != 0 {
		dst = strconv.AppendUint(append(dst, ' '), j.cancelled, 10)
	}
	return dst
}

// appendCancel appends the value of the record of a cancel.
func appendCancel(dst []byte, cancelled uint64) []byte {
	return strconv.AppendUint(append(dst, "- "...), cancelled, 10)
}

// journal reads an apply; found is false if the number is unknown or is that of a cancel.
func (r *records) journal(name string, number uint64) (j journal, found bool, err error) {
	value, err := r.Value(journalKey(name, number))
	if err != nil || value == nil {
		return j, false, err
	}
	return parseJournal(value)
}

func parseJournal(value []byte) (j journal, apply bool, err error) {
	if len(value) > 0 && value[0] == '-' {
		return j, false, nil
	}
	n, err := fmt.Sscanf(string(value), "%d %d", &j.amount, &j.cancelled)
	if n == 0 {
		return j, false, fmt.Errorf("the journal record %q is damaged: %w", value, err)
	}
	return j, true, nil
}
