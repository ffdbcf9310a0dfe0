package sequence

import (
	"bytes"
	"strconv"
	"time"

	"gotycoon/db"
)

// Quota is a quota at one moment.
type Quota struct {
	Name      string // empty: the quota without a name
	Remaining int64
	Journal   uint64 // the last journal number
	Open      bool   // false: used up, or an apply was refused
}

// List returns the quotas in the order of their names, at most limit of them, used since the start
// or not.
func (s *QuotaServer) List(limit int) ([]Quota, error) {
	names, err := s.records.names([]byte(quotaPrefix), limit)
	if err != nil {
		return nil, err
	}
	// The quota without a name exists from the start, but has records only after its first call.
	if len(names) == 0 || names[0] != "" {
		names = append([]string{""}, names...)
	}
	var owed db.Pending
	all := make([]Quota, 0, len(names))
	for _, name := range names {
		q, err := s.quotas.get([]byte(name), false)
		if err != nil {
			continue // other records of a quota without a state record
		}
		now, err := q.look(&owed)
		if err != nil {
			return nil, err
		}
		all = append(all, Quota{name, now.remaining, now.journal, now.open})
	}
	return all, owed.Wait()
}

// Sequence is a sequence at one moment.
type Sequence struct {
	Name  string    // empty: the sequence without a name
	Bound time.Time // the moments of all numbers given out are before it
}

// List returns the sequences of this server in the order of their names, at most limit of them,
// used since the start or not.
func (s *SequenceServer) List(limit int) ([]Sequence, error) {
	prefix := s.records.sequenceKey(s.records.server(), "")
	page, err := s.records.db.Page(nil, db.PageOptions{Prefix: prefix, Records: limit, Examine: limit, Value: 32})
	if err != nil {
		return nil, err
	}
	all := make([]Sequence, 0, len(page.Records))
	for _, r := range page.Records {
		if bound, err := strconv.ParseInt(string(r.Value), 10, 64); err == nil && bound > 0 {
			all = append(all, Sequence{string(r.Key[len(prefix):]), time.Unix(bound, 0)})
		}
	}
	return all, nil
}

// names returns the distinct words that stand between prefix and the next zero byte in the keys, at
// most limit. It jumps from word to word. Like get, it does not wait until the records are safe.
func (r *records) names(prefix []byte, limit int) ([]string, error) {
	var names []string
	after := prefix
	for len(names) < limit {
		page, err := r.db.Page(new(db.Pending), db.PageOptions{Prefix: prefix, After: after, Records: 1, Examine: 1})
		if err != nil || len(page.Records) == 0 {
			return names, err
		}
		name, _, _ := bytes.Cut(page.Records[0].Key[len(prefix):], []byte{0})
		names = append(names, string(name))
		after = append(append(bytes.Clone(prefix), name...), 1)
	}
	return names, nil
}
