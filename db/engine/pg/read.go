package pg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"gotycoon/db/engine"
)

// Read returns the records of keys, by one statement: it sees one moment.
func (e *Engine) Read(ctx context.Context, keys []engine.Key, how engine.Reading) (recs []engine.Record, err error) {
	for i := range keys {
		if i == 0 || keys[i-1].DB != keys[i].DB {
			if err := e.table(ctx, keys[i].DB); err != nil {
				return nil, err
			}
		}
	}
	if how.Hold.Lane != 0 && e.opts.Hold > 0 && len(keys) > 0 {
		return e.hold(ctx, keys, how)
	}
	c, err := e.readers.Acquire(ctx)
	if err != nil {
		return nil, mean(err, false)
	}
	if len(keys) == 0 {
		err = c.Ping(ctx)
	} else {
		var rows pgx.Rows
		rows, err = c.Query(ctx, readText(keys, how.Most), readArgs(keys, how.Most)...)
		if err == nil {
			recs, err = collect(rows, keys)
		}
	}
	return recs, e.done(c, e.readers, err, false)
}

// value is what a statement returns of a value: with a parameter most all of it or only its size,
// which PostgreSQL knows without reading the value.
func value(most int) string {
	if most == 0 {
		return "v"
	}
	return "CASE WHEN octet_length(v) <= $1 THEN v END, octet_length(v)"
}

// readText returns the statement that reads keys: an arm for each database, and a shorter one for
// a single key, which is planned and carried out quicker. Records with the revision 0 are what hold
// has stored in this transaction.
func readText(keys []engine.Key, most int) string {
	first := 1 + min(most, 1)
	if len(keys) == 1 {
		return fmt.Sprintf("SELECT %d, k, xt, ver, %s FROM r%[1]d WHERE k = $%[3]d AND ver > 0", keys[0].DB, value(most), first)
	}
	var arms []string
	for i := range keys {
		if i == 0 || keys[i-1].DB != keys[i].DB {
			arms = append(arms, fmt.Sprintf("SELECT %d, k, xt, ver, %s FROM r%[1]d WHERE k = ANY($%[3]d) AND ver > 0",
				keys[i].DB, value(most), len(arms)+first))
		}
	}
	return strings.Join(arms, " UNION ALL ")
}

func readArgs(keys []engine.Key, most int) (args []any) {
	if most > 0 {
		args = append(args, most)
	}
	if len(keys) == 1 {
		return append(args, notNull(keys[0].Key))
	}
	for from := 0; from < len(keys); {
		upTo := from
		var names [][]byte
		for ; upTo < len(keys) && keys[upTo].DB == keys[from].DB; upTo++ {
			names = append(names, notNull(keys[upTo].Key))
		}
		args, from = append(args, names), upTo
	}
	return args
}

// collect reads rows of (database, k, xt, ver, v), perhaps with a size, in the order of their keys.
// Values come as PostgreSQL's binary format has them: bytes as they are, numbers in big-endian
// order.
func collect(rows pgx.Rows, keys []engine.Key) ([]engine.Record, error) {
	defer rows.Close()
	recs := make([]engine.Record, 0, len(keys))
	for rows.Next() {
		raw := rows.RawValues()
		r, err := recordOf(uint16(binary.BigEndian.Uint32(raw[0])), raw[1:])
		if err != nil {
			return nil, err
		}
		recs = append(recs, r)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	compare := func(a, b engine.Record) int { return engine.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(recs, compare) {
		slices.SortFunc(recs, compare)
	}
	return recs, nil
}

// errRow is for what somebody has put into a table by hand.
var errRow error = &engine.Error{Kind: engine.Refused, Err: errors.New(
	"the engine has a row that gotycoon has not made: remove it from the tables in the schema gotycoon")}

// recordOf returns the record of a row of (k, xt, ver, v, size of v). Without v it is a bare one.
// The size is there if v may be NULL: a value that was left out.
func recordOf(db uint16, raw [][]byte) (r engine.Record, err error) {
	xt, revision := raw[1], raw[2]
	if raw[0] == nil || len(xt) != 8 || len(revision) != 8 {
		return r, errRow
	}
	r.XT, r.Revision = int64(binary.BigEndian.Uint64(xt)), binary.BigEndian.Uint64(revision)
	if r.XT < 0 || r.XT > engine.Forever || r.Revision < engine.FirstRevision || r.Revision > engine.Replaced {
		return r, errRow
	}
	var v []byte
	if len(raw) > 3 {
		v = raw[3]
	}
	room := make([]byte, 0, len(raw[0])+len(v))
	room = append(room, raw[0]...)
	r.Key = engine.Key{DB: db, Key: room[:len(room):len(room)]}
	switch {
	case len(raw) > 3 && v != nil:
		r.Value = append(room, v...)[len(raw[0]):]
	case len(raw) > 4 && len(raw[4]) == 4:
		r.Left = int(binary.BigEndian.Uint32(raw[4]))
	case len(raw) > 3:
		return r, errRow
	}
	return r, nil
}
