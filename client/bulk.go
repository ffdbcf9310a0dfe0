package client

import (
	"context"
	"slices"
	"strconv"

	"gotycoon/httpapi/tsv"
)

// prefixed are the rows of a bulk, which have a "_" before each key.
func prefixed(values map[string][]byte) []tsv.Row {
	rows := make([]tsv.Row, 0, len(values))
	for key, value := range values {
		rows = append(rows, tsv.Row{Name: []byte("_" + key), Value: value})
	}
	return rows
}

// unprefixed takes the records out of the rows of a bulk.
func (r Rows) unprefixed() Rows {
	out := make(Rows, len(r))
	for name, value := range r {
		if name != "" && name[0] == '_' {
			out[name[1:]] = value
		}
	}
	return out
}

// sorted returns the names.
func (r Rows) sorted() []string {
	names := make([]string, 0, len(r))
	for name := range r {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// SetBulk stores records and returns how many. With atomic all are stored or none.
func (db *DB) SetBulk(ctx context.Context, records map[string][]byte, xt XT, atomic bool) (int64, error) {
	rows := append(db.rows(append(atomicParam(atomic), xt.param()...)...), prefixed(records)...)
	out, err := db.call(ctx, "set_bulk", rows)
	return out.Int("num"), err
}

func atomicParam(atomic bool) []string {
	if atomic {
		return []string{"atomic", ""}
	}
	return nil
}

// RemoveBulk removes records and returns how many there were.
func (db *DB) RemoveBulk(ctx context.Context, keys []string, atomic bool) (int64, error) {
	out, err := db.call(ctx, "remove_bulk", db.keyRows(keys, atomic))
	return out.Int("num"), err
}

// GetBulk returns the records that exist, by key.
func (db *DB) GetBulk(ctx context.Context, keys []string, atomic bool) (map[string][]byte, error) {
	out, err := db.call(ctx, "get_bulk", db.keyRows(keys, atomic))
	return out.unprefixed(), err
}

func (db *DB) keyRows(keys []string, atomic bool) []tsv.Row {
	rows := db.rows(atomicParam(atomic)...)
	for _, key := range keys {
		rows = append(rows, tsv.Row{Name: []byte("_" + key)})
	}
	return rows
}

// MatchPrefix returns at most max keys that begin with prefix, all where max is negative.
func (db *DB) MatchPrefix(ctx context.Context, prefix string, max int64) ([]string, error) {
	return db.match(ctx, "match_prefix", "prefix", prefix, max)
}

// MatchRegex returns at most max keys that match a regular expression.
func (db *DB) MatchRegex(ctx context.Context, regex string, max int64) ([]string, error) {
	return db.match(ctx, "match_regex", "regex", regex, max)
}

// MatchSimilar returns at most max keys that at most limit characters set apart from origin, nearest first.
func (db *DB) MatchSimilar(ctx context.Context, origin string, limit int64, utf bool, max int64) ([]string, error) {
	params := []string{"range", strconv.FormatInt(limit, 10)}
	if utf {
		params = append(params, "utf", "")
	}
	return db.match(ctx, "match_similar", "origin", origin, max, params...)
}

// match returns keys in the order that the server gives them: each row's value is the key's place.
func (db *DB) match(ctx context.Context, proc, name, value string, max int64, more ...string) ([]string, error) {
	params := append([]string{name, value}, more...)
	if max >= 0 {
		params = append(params, "max", strconv.FormatInt(max, 10))
	}
	out, err := db.Call(ctx, proc, params...)
	if err != nil {
		return nil, err
	}
	ranks := out.unprefixed()
	keys := ranks.sorted()
	slices.SortStableFunc(keys, func(a, b string) int { return int(ranks.Int(a) - ranks.Int(b)) })
	return keys, nil
}
