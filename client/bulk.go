package client

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"gotycoon/client/wire/tsv"
)

// prefixed returns rows for the records of a bulk request: "_" stands before each key.
func prefixed(values map[string][]byte) []tsv.Row {
	rows := make([]tsv.Row, 0, len(values))
	for key, value := range values {
		rows = append(rows, tsv.Row{Name: []byte("_" + key), Value: value})
	}
	return rows
}

// unprefixed returns the records in the rows of a bulk reply.
func (r Rows) unprefixed() Rows {
	out := make(Rows, len(r))
	for name, value := range r {
		if name != "" && name[0] == '_' {
			out[name[1:]] = value
		}
	}
	return out
}

// sorted returns the names in their order.
func (r Rows) sorted() []string { return slices.Sorted(maps.Keys(r)) }

// SetBulk stores records, and returns how many. With atomic it stores all of them or none.
func (db *DB) SetBulk(ctx context.Context, records map[string][]byte, expires Expiry, atomic bool) (int64, error) {
	rows := append(db.rows(append(atomicParam(atomic), expires.param()...)...), prefixed(records)...)
	out, err := db.call(ctx, "set_bulk", rows)
	return out.Int("num"), err
}

func atomicParam(atomic bool) []string {
	if atomic {
		return []string{"atomic", ""}
	}
	return nil
}

// RemoveBulk removes records, and returns how many existed. With atomic all of them vanish at the
// same moment.
func (db *DB) RemoveBulk(ctx context.Context, keys []string, atomic bool) (int64, error) {
	out, err := db.call(ctx, "remove_bulk", db.keyRows(keys, atomic))
	return out.Int("num"), err
}

// GetBulk returns those of the records that exist, by key. With atomic they are of one moment.
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

// MatchPrefix returns at most limit keys that begin with prefix; all, if limit is negative. The
// server may list records that have expired a short time ago.
func (db *DB) MatchPrefix(ctx context.Context, prefix string, limit int64) ([]string, error) {
	return db.match(ctx, "match_prefix", "prefix", prefix, limit)
}

// MatchRegex returns at most limit keys in which a POSIX extended regular expression matches. A
// malformed expression is an error with the code Logic.
func (db *DB) MatchRegex(ctx context.Context, regex string, limit int64) ([]string, error) {
	return db.match(ctx, "match_regex", "regex", regex, limit)
}

// MatchSimilar returns at most limit keys whose edit distance from origin is at most distance,
// nearest first. An edit changes a byte, or with utf a character.
func (db *DB) MatchSimilar(ctx context.Context, origin string, distance int64, utf bool, limit int64) ([]string, error) {
	params := []string{"range", strconv.FormatInt(distance, 10)}
	if utf {
		params = append(params, "utf", "")
	}
	return db.match(ctx, "match_similar", "origin", origin, limit, params...)
}

// match returns keys in the order of the server: the value of each row is the rank of its key.
func (db *DB) match(ctx context.Context, proc, name, value string, limit int64, more ...string) ([]string, error) {
	params := append([]string{name, value}, more...)
	if limit >= 0 {
		params = append(params, "max", strconv.FormatInt(limit, 10))
	}
	out, err := db.Call(ctx, proc, params...)
	if err != nil {
		return nil, err
	}
	ranks := out.unprefixed()
	keys := ranks.sorted()
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(ranks.Int(a), ranks.Int(b)) })
	return keys, nil
}
