package pg

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

// Scan returns a page of records.
func (e *Engine) Scan(ctx context.Context, s engine.Scan) (p engine.Page, err error) {
	if err := e.table(ctx, s.DB); err != nil {
		return p, err
	}
	err = e.with(ctx, e.readers, func(c *pgxpool.Conn) error {
		p, err = scan(ctx, c.Conn(), fmt.Sprintf("r%d", s.DB), s)
		return err
	})
	return p, err
}

// scan scans what from names. The statement asks for one record more than the page has, to tell
// whether there is any. With Bytes, the sum of the values in front of a record decides whether
// it is still in the page, so that no more is sent.
func scan(ctx context.Context, c *pgx.Conn, from string, s engine.Scan) (p engine.Page, err error) {
	limit := max(1, s.Limit)
	var args []any
	if s.Most > 0 && !s.Bare {
		args = append(args, s.Most)
	}
	where, args := conditions(s, args)
	order, columns := "k", "k, xt, ver, "+value(s.Most)
	if s.Backward {
		order = "k DESC"
	}
	if s.Bare {
		columns = "k, xt, ver"
	}
	args = append(args, limit+1)
	if s.Bytes > 0 && !s.Bare {
		columns = "k, xt, ver, v, octet_length(v) AS size"
		if s.Most > 0 {
			columns = "k, xt, ver, CASE WHEN octet_length(v) <= $1 THEN v END AS v, octet_length(v) AS size"
		}
	}
	text := fmt.Sprintf("SELECT %s FROM %s r%s ORDER BY %s LIMIT $%d", columns, from, where, order, len(args))
	counted := s.Bytes > 0 && !s.Bare
	if counted {
		args = append(args, s.Bytes)
		text = fmt.Sprintf(`SELECT k, xt, ver, v, size, n FROM (SELECT *, count(*) OVER () AS n,
			sum(coalesce(octet_length(v), 0)) OVER (ORDER BY %s ROWS UNBOUNDED PRECEDING) - coalesce(octet_length(v), 0) AS before FROM (%s) a) b
			WHERE before < $%d ORDER BY %s`, order, text, len(args), order)
	}
	rows, err := c.Query(ctx, text, args...)
	if err != nil {
		return p, err
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		raw := rows.RawValues()
		if seen++; seen <= limit {
			r, err := recordOf(s.DB, raw[:min(len(raw), 5)])
			if err != nil {
				return p, err
			}
			p.Records = append(p.Records, r)
		}
		if counted {
			p.More = int(binary.BigEndian.Uint64(raw[5])) > seen
		}
	}
	p.More = p.More || seen > limit
	return p, rows.Err()
}

// conditions returns which keys a scan has, and the arguments with those that this takes.
func conditions(s engine.Scan, before []any) (where string, args []any) {
	args = before
	var all []string
	add := func(operator string, key []byte) {
		args = append(args, key)
		all = append(all, fmt.Sprintf("k %s $%d", operator, len(args)))
	}
	// of two limits in the same direction the narrower one, as PostgreSQL would begin at either
	low, from := s.Prefix, ">="
	if bytes.Compare(s.Floor, low) > 0 {
		low = s.Floor
	}
	if !s.Edge && !s.Backward && bytes.Compare(s.Key, low) >= 0 {
		low, from = s.Key, ">"
		if s.Inclusive {
			from = ">="
		}
	}
	high, upTo := after(s.Prefix), "<"
	if !s.Edge && s.Backward && (high == nil || bytes.Compare(s.Key, high) < 0) {
		high, upTo = notNull(s.Key), "<"
		if s.Inclusive {
			upTo = "<="
		}
	}
	if len(low) > 0 || from == ">" {
		add(from, notNull(low))
	}
	if high != nil {
		add(upTo, high)
	}
	if len(all) == 0 {
		return "", args
	}
	return " WHERE " + strings.Join(all, " AND "), args
}

// after returns the first key behind all that begin with prefix, nil where there is none.
func after(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for len(end) > 0 {
		if end[len(end)-1]++; end[len(end)-1] != 0 {
			return end
		}
		end = end[:len(end)-1]
	}
	return nil
}
