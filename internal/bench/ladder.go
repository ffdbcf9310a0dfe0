//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// The size ladder shows how a server with a database file and an update log does at several numbers
// of records. Each size is a rung: a server of its own, which goes through these phases.
//
//	fill      stores every record once, in bulks of 100 over a few connections, as fast as they
//	          are taken; the keys are random, so neighbours in time are strangers in the file
//	update    stores random records anew
//	get       reads random records, one HTTP request each
//	stop      SIGTERM, until the process has ended
//	start     until the first answer after that
//	restart   until the first answer after kill -9 in the middle of updates; then every record
//	          that was acknowledged before the kill must be there
//
// The processor time and the bytes written of a phase include what the server does afterwards until
// it writes nothing more: debt that is left behind is not forgotten. Between the phases the log's
// old files are removed, which makes a server of ours take a checkpoint.

const (
	million     = 1_000_000
	recordSize  = ladderKeySize + valueSize
	bigRung     = 256 * million
	slowestRate = 100_000 // records/s, for the estimate of the duration
)

// ladderOptions are the options of the ladder.
type ladderOptions struct {
	sizes, db, more, tsv string
	big                  bool
	updates, gets        int
}

func (o *ladderOptions) register(f *flag.FlagSet) {
	f.StringVar(&o.sizes, "sizes", "1m,4m,16m,64m", "`numbers` of records of the ladder's rungs; m is a million, k a thousand")
	f.BoolVar(&o.big, "big", false, "ladder: a rung of 256 million records too, where the disk has room")
	o.updates, o.gets = million, 200_000
	f.Func("updates", "ladder: `number` of random updates (default 1m)", sizeInto(&o.updates))
	f.Func("gets", "ladder: `number` of random gets (default 200k)", sizeInto(&o.gets))
	f.StringVar(&o.db, "db", "kct", "ladder: `kind` of the database file, as its name ends: kct, kch, kct#ktcapcnt=…")
	f.StringVar(&o.more, "options", "", "ladder: further `options` of the server, with blanks between them")
	f.StringVar(&o.tsv, "tsv", "", "ladder: `file` for the rows too, for -plot")
}

// rungs returns the numbers of records of the rungs.
func (o *ladderOptions) rungs() ([]int, error) {
	var sizes []int
	for _, text := range strings.Split(o.sizes, ",") {
		n, err := parseSize(text)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, n)
	}
	if o.big {
		sizes = append(sizes, bigRung)
	}
	return sizes, nil
}

// sizeInto returns a flag's function that reads a number of records.
func sizeInto(into *int) func(string) error {
	return func(text string) (err error) {
		*into, err = parseSize(text)
		return err
	}
}

// parseSize reads a number of records: 250k, 0.25m, 64m.
func parseSize(text string) (int, error) {
	digits, unit := text, 1.0
	switch {
	case strings.HasSuffix(text, "k"):
		digits, unit = text[:len(text)-1], 1000
	case strings.HasSuffix(text, "m"):
		digits, unit = text[:len(text)-1], million
	}
	f, err := strconv.ParseFloat(digits, 64)
	n := int(f * unit)
	if err != nil || n < bulkSize || n > 1<<40 {
		return 0, fmt.Errorf("%q is no number of records like 250k or 16m, %d at least", text, bulkSize)
	}
	return n, nil
}

// sizeName is how a number of records is given and printed.
func sizeName(n int) string {
	switch {
	case n%million == 0 || n > million:
		return strconv.FormatFloat(float64(n)/million, 'f', -1, 64) + "m"
	case n%1000 == 0:
		return strconv.Itoa(n/1000) + "k"
	}
	return strconv.Itoa(n)
}

// roomNeeded returns the bytes of disk that a rung may take: two and a half times the records in
// the database file, and the log of all that is stored before its old files are removed.
func roomNeeded(records, updates int) int64 {
	const logRecord, spare = 145, 1 << 30
	return int64(records)*(recordSize*5/2+logRecord) + int64(updates)*logRecord + spare
}

// checkRoom refuses sizes for which the disk of a directory has not enough room.
func checkRoom(sizes []int, updates int, dir string, free int64) error {
	for _, n := range sizes {
		if need := roomNeeded(n, updates); need > free {
			return fmt.Errorf("%s records may take %d GiB of disk, and %s has %d GiB free: set TMPDIR to a directory with more, or -sizes to smaller ones",
				sizeName(n), need>>30, dir, free>>30)
		}
	}
	return nil
}

// estimate returns how long the rungs take if the server is slow, and a minute more for each.
func estimate(sizes []int, updates int) time.Duration {
	sum := time.Duration(0)
	for _, n := range sizes {
		sum += time.Minute + time.Duration(n+updates)*time.Second/slowestRate
	}
	return sum.Round(time.Minute) // to a whole minute: it is no more than an estimate
}

// ladder climbs all rungs. Rows are printed as they are made.
func (b *bench) ladder() error {
	o := &b.scale
	sizes, err := o.rungs()
	if err != nil {
		return err
	}
	free, err := diskFree(os.TempDir())
	if err != nil {
		return err
	}
	if err := checkRoom(sizes, o.updates, os.TempDir(), free); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "ladder: %d rungs up to %s records, about %v\n", len(sizes), sizeName(sizes[len(sizes)-1]), estimate(sizes, o.updates))
	rows, err := b.ladderTable(o)
	if err != nil {
		return err
	}
	defer rows.close()
	for _, n := range sizes {
		r := &rung{bench: b, options: o, rows: rows, size: n}
		if err := r.climb(); err != nil {
			return fmt.Errorf("%s records: %w", sizeName(n), err)
		}
	}
	return rows.close()
}
