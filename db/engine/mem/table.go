package mem

import (
	"bytes"
	"slices"
	"strings"

	"gotycoon/db/engine"
)

// table is one database.
type table struct {
	records map[string]engine.Record
	order   []string // the keys, ascending
	bytes   int64    // of keys and values
}

func size(r *engine.Record) int64 { return int64(len(r.Key.Key) + len(r.Value)) }

// put stores a record, whose slices become the table's.
func (t *table) put(r engine.Record) {
	key := string(r.Key.Key)
	t.remove(key)
	i, _ := slices.BinarySearch(t.order, key)
	t.order = slices.Insert(t.order, i, key)
	t.records[key] = r
	t.bytes += size(&r)
}

// remove removes a record; where there is none it does nothing.
func (t *table) remove(key string) {
	r, ok := t.records[key]
	if !ok {
		return
	}
	i, _ := slices.BinarySearch(t.order, key)
	t.order = slices.Delete(t.order, i, i+1)
	delete(t.records, key)
	t.bytes -= size(&r)
}

// clone returns the table as it is. Records in a table never change, so they are shared.
func (t *table) clone() *table {
	c := &table{records: make(map[string]engine.Record, len(t.records)), order: slices.Clone(t.order), bytes: t.bytes}
	for key, r := range t.records {
		c.records[key] = r
	}
	return c
}

// copied returns a record whose slices are the caller's. A bare one has no value.
func copied(r engine.Record, bare bool) engine.Record {
	r.Key.Key = bytes.Clone(r.Key.Key)
	if bare {
		r.Value = nil
	} else {
		r.Value = append([]byte{}, r.Value...) // an empty value is a value
	}
	return r
}

// small is copied for who wants values of at most so many bytes; 0: of any size.
func small(r engine.Record, bare bool, most int) engine.Record {
	if bare || most == 0 || len(r.Value) <= most {
		return copied(r, bare)
	}
	r.Left = len(r.Value)
	return copied(r, true)
}

// page returns the records that a scan asks for.
func (t *table) page(s engine.Scan) (p engine.Page) {
	keys, step, i := t.within(string(s.Prefix)), 1, 0
	floor, _ := slices.BinarySearch(keys, string(s.Floor))
	keys = keys[floor:]
	if !s.Edge {
		var there bool
		i, there = slices.BinarySearch(keys, string(s.Key))
		if there && !s.Inclusive && !s.Backward {
			i++
		}
		if s.Backward && (!there || !s.Inclusive) {
			i--
		}
	} else if s.Backward {
		i = len(keys) - 1
	}
	if s.Backward {
		step = -1
	}
	taken := 0
	for ; i >= 0 && i < len(keys); i += step {
		if len(p.Records) == max(1, s.Limit) || s.Bytes > 0 && taken >= s.Bytes {
			p.More = true
			return p
		}
		p.Records = append(p.Records, small(t.records[keys[i]], s.Bare, s.Most))
		taken += len(p.Records[len(p.Records)-1].Value)
	}
	return p
}

// within returns the keys that begin with prefix.
func (t *table) within(prefix string) []string {
	from, _ := slices.BinarySearch(t.order, prefix)
	n := 0
	for n < len(t.order)-from && strings.HasPrefix(t.order[from+n], prefix) {
		n++
	}
	return t.order[from : from+n]
}
