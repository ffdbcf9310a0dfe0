package sequence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/services/leader"
)

// The records of the services' database that belong to sequences and quotas. They are text, to be
// read and mended with the usual tools; journal numbers in keys are 8 bytes, big-endian, so that
// keys sort by number.
//
//	key                                      value
//	"sequence" 00 SERVER-NO "/" SID 00 NAME  BOUND                       1
//	"quota" 00 NAME 00 "state"               REMAINING JOURNAL OPEN ...  2
//	"quota" 00 NAME 00 "journal" 00 N        AMOUNT [CANCELJOURNAL]      an apply
//	"quota" 00 NAME 00 "journal" 00 N        - CANCELLED                 a cancel
//	"quota" 00 NAME 00 "id" 00 ID            CALL LF REPLY               expires after a day
//
//	1  All seconds in numbers of server SID are below BOUND; 0: none was given out.
//	2  JOURNAL is the last journal number, OPEN is 0 or 1; last.go draws what follows.
//
// Each record has one writer: a bound is written by the server SID, all others by the primary
// (package primary). Older versions wrote bounds without "/" SID; each server reads them as its
// own.
type records struct {
	db       *db.DB
	serverNo int
	sid      uint16
}

// Vital reports whether a record of the services' database is stored even when the disk is nearly
// full. Bounds and claims are: they are few and small. Quotas are not: they grow with every call.
func Vital(key []byte) bool { return !bytes.HasPrefix(key, []byte(quotaPrefix)) }

// quotaPrefix begins the keys of quotas.
const quotaPrefix = "quota\x00"

// idLifetime is how long a repeated quota call is recognised.
const idLifetime = 24 * time.Hour

// sequencePrefix is a prefix of the keys of all sequences with this server number. Server numbers
// that begin with the same digits share it: 1 finds 12 as well.
func (r *records) sequencePrefix() []byte {
	return strconv.AppendInt([]byte(leader.SequencePrefix), int64(r.serverNo), 10)
}

func (r *records) sequenceKey(server, name string) []byte {
	return append(r.sequencePrefix(), server+"\x00"+name...)
}

// server returns this server's part of the keys of sequences.
func (r *records) server() string { return "/" + strconv.Itoa(int(r.sid)) }

func quotaKey(name, part string) []byte { return []byte(quotaPrefix + name + "\x00" + part) }

func journalKey(name string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(quotaKey(name, "journal\x00"), number)
}

// get returns the value of a record, nil if there is none. It does not wait until the record is
// safe, since quotas read under their locks. A reply that shows the value waits by quota.seen, and
// an update that is based on the record cannot be safe before the record is.
func (r *records) get(key []byte) ([]byte, error) {
	value, _, err := r.db.Get(new(db.Pending), nil, key)
	if errors.Is(err, dberr.ErrNoRecord) {
		return nil, nil
	}
	if value == nil {
		value = []byte{}
	}
	return value, err
}

// users reports whether this server has used its server number, for a sequence of any name, and
// returns the ID of another server that has used it, "" if there is none.
func (r *records) users() (used bool, other string, err error) {
	servers, err := r.names(r.sequencePrefix(), MaxNames)
	for _, server := range servers {
		switch {
		case server == r.server():
			used = true
		case server != "" && server[0] == '/':
			other = server[1:]
		}
	}
	return used, other, err
}

// bounds returns the bound of this server's sequence, and the greatest bound of other servers with
// the same server number; 0 where there is none.
func (r *records) bounds(name string) (own, others uint64, err error) {
	servers, err := r.names(r.sequencePrefix(), MaxNames)
	if err != nil {
		return 0, 0, err
	}
	for _, server := range servers {
		if server != "" && server[0] != '/' {
			continue // a longer server number that begins with the same digits
		}
		bound, err := r.bound(server, name)
		switch {
		case err != nil:
			return 0, 0, err
		case server == "" || server == r.server():
			own = max(own, bound)
		default:
			others = max(others, bound)
		}
	}
	return own, others, nil
}

func (r *records) bound(server, name string) (uint64, error) {
	value, err := r.get(r.sequenceKey(server, name))
	if err != nil || value == nil {
		return 0, err
	}
	bound, err := strconv.ParseUint(string(value), 10, 64-serialBits)
	if err != nil {
		return 0, fmt.Errorf("the record of sequence %q is damaged: %w", name, err)
	}
	return bound, nil
}

// setBound returns when the bound would survive a power cut.
func (r *records) setBound(name string, bound uint64) error {
	var owed db.Pending
	return errors.Join(r.putBound(&owed, name, bound), owed.Wait(), r.db.SyncLog())
}

func (r *records) putBound(owed *db.Pending, name string, bound uint64) error {
	return r.db.Set(owed, r.sequenceKey(r.server(), name), strconv.AppendUint(nil, bound, 10), record.Never)
}

// state returns the recorded state of a quota; known is false for a new quota.
func (r *records) state(name string) (s state, known bool, err error) {
	value, err := r.get(quotaKey(name, "state"))
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

func stateRecord(name string, s state) db.Record {
	open := 0
	if s.open {
		open = 1
	}
	return db.Record{Key: quotaKey(name, "state"), Value: fmt.Appendf(nil, "%d %d %d", s.remaining, s.journal, open), XT: record.Never}
}

// journal is an apply: its amount, and the journal number of its cancel, 0 if there is none.
type journal struct {
	amount    int64
	cancelled uint64
}

// journal reads an apply; found is false if the number is unknown or is that of a cancel.
func (r *records) journal(name string, number uint64) (j journal, found bool, err error) {
	value, err := r.get(journalKey(name, number))
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

func applyRecord(name string, number uint64, j journal) db.Record {
	value := strconv.AppendInt(nil, j.amount, 10)
	if j.cancelled != 0 {
		value = strconv.AppendUint(append(value, ' '), j.cancelled, 10)
	}
	return db.Record{Key: journalKey(name, number), Value: value, XT: record.Never}
}

func cancelRecord(name string, number, cancelled uint64) db.Record {
	return db.Record{Key: journalKey(name, number), Value: strconv.AppendUint([]byte("- "), cancelled, 10), XT: record.Never}
}
