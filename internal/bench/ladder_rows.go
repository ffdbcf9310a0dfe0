//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ladderRow is one phase of one rung. A column that means nothing for the phase has no value.
type ladderRow struct {
	size   int
	phase  string
	values map[string]float64
}

// ladderColumns are the columns behind size and phase: their names in a TSV file, their titles in
// the table, and the decimals there.
var ladderColumns = []struct {
	name, title string
	decimals    int
}{
	{"operations", "operations", 0},
	{"seconds", "s", 2},
	{"rate", "per second", 0},
	{"cpu", "server CPU, µs each", 1},
	{"written", "bytes written each", 0},
	{"read", "bytes read each", 0},
	{"p50", "p50 of waits, ms", 2},
	{"p99", "p99", 2},
	{"p999", "p99.9", 2},
	{"longest", "longest", 2},
	{"stall", "the machine's own longest stall, ms", 2},
	{"debt", "s until quiet", 1},
	{"rss", "RSS, MiB", 0},
	{"own", "without mapped files", 0},
	{"file", "file, MiB", 0},
	{"log", "log, MiB", 0},
	{"ratio", "file ÷ data", 2},
}

// ladderTable prints rows as a Markdown table, and into the file of -tsv.
func (b *bench) ladderTable(o *ladderOptions) (*ladderWriter, error) {
	w := &ladderWriter{bench: b}
	if o.tsv != "" {
		var err error
		if w.tsv, err = os.Create(o.tsv); err != nil {
			return nil, err
		}
		if err := writeHead(w.tsv, fmt.Sprintf("%s, ladder.%s %s", machine(), o.db, o.more)); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	titles := []string{"records", "phase"}
	for _, c := range ladderColumns {
		titles = append(titles, c.title)
	}
	b.table(fmt.Sprintf("Size ladder: `.%s` with `-ulog`, 16-byte random keys, 100-byte values", o.db), titles...)
	return w, nil
}

type ladderWriter struct {
	bench *bench
	tsv   *os.File // nil without -tsv, and when it is closed
}

func (w *ladderWriter) close() error {
	if w.tsv == nil {
		return nil
	}
	f := w.tsv
	w.tsv = nil
	return f.Close()
}

func (w *ladderWriter) add(r ladderRow) error {
	cells := []any{sizeName(r.size), r.phase}
	for _, c := range ladderColumns {
		v, ok := r.values[c.name]
		switch {
		case !ok:
			cells = append(cells, "")
		case c.decimals == 0:
			cells = append(cells, v)
		default:
			cells = append(cells, strconv.FormatFloat(v, 'f', c.decimals, 64))
		}
	}
	w.bench.row(cells...)
	if w.tsv == nil {
		return nil
	}
	return writeRow(w.tsv, r)
}

// The format of a TSV file of the ladder: comment lines with "#", a line with the names of the
// columns, and a line for each row. Missing values are empty.

func writeHead(w io.Writer, comment string) error {
	names := []string{"size", "phase"}
	for _, c := range ladderColumns {
		names = append(names, c.name)
	}
	_, err := fmt.Fprintf(w, "# %s\n%s\n", comment, strings.Join(names, "\t"))
	return err
}

func writeRow(w io.Writer, r ladderRow) error {
	cells := []string{strconv.Itoa(r.size), r.phase}
	for _, c := range ladderColumns {
		cell := ""
		if v, ok := r.values[c.name]; ok {
			cell = strconv.FormatFloat(v, 'g', 6, 64)
		}
		cells = append(cells, cell)
	}
	_, err := fmt.Fprintln(w, strings.Join(cells, "\t"))
	return err
}

// readRows reads what writeHead and writeRow have written. Columns may be in any order, and columns
// that this version does not know are kept, so files of other versions can be plotted.
func readRows(in io.Reader) (rows []ladderRow, comment string, err error) {
	var names []string
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if text, ok := strings.CutPrefix(line, "#"); ok {
			comment = strings.TrimSpace(comment + text)
			continue
		}
		cells := strings.Split(line, "\t")
		if names == nil {
			if names = cells; !slices.Contains(names, "size") || !slices.Contains(names, "phase") {
				return nil, "", fmt.Errorf("line %d: no columns \"size\" and \"phase\"", n)
			}
			continue
		}
		r, err := readRow(names, cells)
		if err != nil {
			return nil, "", fmt.Errorf("line %d: %w", n, err)
		}
		rows = append(rows, r)
	}
	return rows, comment, lines.Err()
}

func readRow(names, cells []string) (ladderRow, error) {
	r := ladderRow{values: map[string]float64{}}
	if len(cells) != len(names) {
		return r, fmt.Errorf("%d cells under %d columns", len(cells), len(names))
	}
	for i, name := range names {
		if name == "phase" {
			r.phase = cells[i]
			continue
		}
		if cells[i] == "" {
			continue
		}
		v, err := strconv.ParseFloat(cells[i], 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return r, fmt.Errorf("%s: %q is no number", name, cells[i])
		}
		if name == "size" {
			r.size = int(v)
		} else {
			r.values[name] = v
		}
	}
	return r, nil
}
