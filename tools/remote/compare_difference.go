package remote

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gotycoon/client"
)

// Values of -by: what the ranges of a division are ranges of.
const (
	byHash = "hash"
	byKey  = "key"
)

const (
	// firstParts is the number of ranges of the first look. By hash there are four times as many:
	// each look by hash reads the whole database, so that fewer looks are better.
	firstParts = 1024

	laterParts = 16   // parts of each range that differs, in later looks
	mostLooks  = 20   // more are needed only if records come all the time
	mostRanges = 256  // ranges that are looked into; further ones are reported as "more"
	fewRecords = 5000 // ranges with at most so many records are compared key by key
	mostKeys   = 4 * fewRecords

	// margin: a record that expires within this time is left out, because one of the servers may
	// have removed it already.
	margin = 5 * time.Second
)

const (
	pollPosition = 50 * time.Millisecond
	betweenLooks = 200 * time.Millisecond // pause of pass if neither side replicates
)

// pair is the two servers of a comparison, and the way in which they are compared.
type pair struct {
	*call
	sides  [2]*client.Client
	names  [2]string // HOST:PORT
	reads  [2]bool   // the server has no checksums: its records are read
	by     string
	wait   time.Duration
	rounds int64
}

// connect makes the two clients: for both arguments, or for -host and -port and the only argument.
func (p *pair) connect() error {
	args := [2]string{p.peerName(), p.args[0]}
	if len(p.args) == 2 {
		args = [2]string(p.args)
	}
	for i, arg := range args {
		e, err := p.endpoint(arg)
		if err != nil {
			return err
		}
		p.sides[i], p.names[i] = e.client, e.name
	}
	return nil
}

func (p *pair) close() {
	for _, side := range p.sides {
		if side != nil { // connect has got so far
			_ = side.Close() // everything has been answered
		}
	}
}

func (p *pair) fail(side int, name string, err error) error {
	return fmt.Errorf("%s failed: %s: %w", name, p.names[side], err)
}

// digests are the digests of one key's record on both sides. An empty digest means that there is no
// record.
type digests [2]string

// difference compares two databases without moving their records.
//
// It divides the key space (or the space of the keys' hashes) into ranges, asks both servers for a
// checksum of each range, and divides the ranges that differ again, until few records are left. Of
// these it asks for the keys with a digest each. For two databases of ten million records with one
// difference:
//
//	look   asks for                           what it leaves
//	1      checksums of 1024 ranges           1 range with about 10,000 records
//	2      the range again, after a wait      the same range, unless a standby was merely late
//	3      checksums of 16 parts of it        1 part with about 600 records, few enough
//	4      a digest of each of its keys       1 key
//
// Both servers go on changing meanwhile, and a standby is always a little behind. So a difference
// counts as certain only after confirm has seen the same two records again, when each side had
// received what the other side had at the look before. Stopping the writers for a comparison would
// be simpler, but this command is for servers that are in use.
type difference struct {
	*pair
	db   [2]string // names
	dbs  [2]digester
	hash bool

	counts    [2]int64
	ranges    []client.Range // the ranges that differ
	different [2]int64       // number of records in ranges
	more      bool           // other ranges differ too, but are not looked into
	ts        [2]uint64      // time stamps of the two servers at the latest look
	noted     bool           // note has printed a line
	refuser   int            // the side that has refused the latest look
	pending   map[string]digests
	certain   map[string]digests
}

// newDifference prepares the comparison of a database of the first server with a database of the
// second.
func newDifference(p *pair, first, second string) *difference {
	d := &difference{pair: p, db: [2]string{first, second}, hash: p.by == byHash, certain: map[string]digests{}}
	for i, name := range [...]string{first, second} {
		db := p.sides[i].DB(name)
		d.dbs[i] = db
		if p.reads[i] {
			d.dbs[i] = &reading{p.sides[i], db}
		}
	}
	return d
}

// find finds the keys that differ and stay different. Between the first and the second look it
// waits for a standby to catch up, so that updates which are merely late are not looked into.
func (d *difference) find(ctx context.Context) error {
	if err := d.begin(ctx); err != nil || len(d.ranges) == 0 {
		return err
	}
	if _, err := d.pass(ctx); err != nil {
		return err
	}
	if _, err := d.look(ctx, 1); err != nil {
		return err
	}
	if err := d.narrow(ctx); err != nil {
		return err
	}
	var err error
	if d.pending, err = d.keys(ctx); err != nil {
		return err
	}
	return d.confirm(ctx)
}

// begin compares everything: by key, or by hash if the database has no order of keys. A server that
// does not know checksums by hash either is an original, whose records are read.
func (d *difference) begin(ctx context.Context) (err error) {
	parts := firstParts
	if d.hash {
		parts *= 4
	}
	d.counts, err = d.look(ctx, parts)
	switch {
	case !notImplemented(err) || d.by == byKey:
		return err
	case !d.hash:
		d.hash = true
	case d.reads[d.refuser]:
		return err
	default:
		d.reads[d.refuser] = true
		d.note(d.names[d.refuser] + " has no checksums: its records are read")
		*d = *newDifference(d.pair, d.db[0], d.db[1])
		d.hash = true
	}
	return d.begin(ctx)
}

func notImplemented(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && e.Code == client.NotImplemented
}

// narrow divides the ranges that differ until they have few records.
func (d *difference) narrow(ctx context.Context) error {
	for looks := 0; looks < mostLooks && max(d.different[0], d.different[1]) > fewRecords; looks++ {
		if len(d.ranges) > mostRanges {
			d.ranges, d.more = d.ranges[:mostRanges], true
		}
		if _, err := d.look(ctx, laterParts); err != nil {
			return err
		}
	}
	return nil
}

// look divides the ranges on the side that has more records in them, asks the other side for the
// same parts, and keeps the parts that differ. It returns how many records each side has in all
// parts.
func (d *difference) look(ctx context.Context, parts int) (counts [2]int64, err error) {
	o := client.ChecksumOptions{Hash: d.hash, Ranges: d.ranges, Parts: parts, At: time.Now().Add(margin)}
	first := 0
	if d.different[1] > d.different[0] {
		first = 1
	}
	var found [2][]client.Part
	for _, i := range [...]int{first, 1 - first} {
		if found[i], d.ts[i], err = d.dbs[i].Checksum(ctx, o); err != nil {
			d.refuser = i
			return counts, d.fail(i, "DB::checksum", err)
		}
		o.Ranges, o.Parts = nil, 1
		for _, p := range found[i] {
			o.Ranges = append(o.Ranges, p.Range)
		}
	}
	if len(found[0]) != len(found[1]) {
		return counts, d.fail(1-first, "DB::checksum", errors.New("the answer has other ranges than were asked for"))
	}
	return d.keep(found), nil
}

// keep sets ranges to the parts that differ. It returns how many records each side has in all
// parts.
func (d *difference) keep(found [2][]client.Part) (counts [2]int64) {
	d.ranges, d.different = nil, [2]int64{}
	for j, one := range found[0] {
		for i := range counts {
			counts[i] += found[i][j].Count
		}
		if one == found[1][j] {
			continue
		}
		d.ranges = append(d.ranges, one.Range)
		for i := range counts {
			d.different[i] += found[i][j].Count
		}
	}
	return counts
}

// keys returns the keys in the ranges whose records differ now.
func (d *difference) keys(ctx context.Context) (map[string]digests, error) {
	if len(d.ranges) == 0 {
		return nil, nil
	}
	o := client.ChecksumOptions{Hash: d.hash, Ranges: d.ranges, At: time.Now().Add(margin)}
	found := map[string]digests{}
	for i, db := range d.dbs {
		list, more, ts, err := db.Digests(ctx, o, mostKeys)
		if err != nil {
			return nil, d.fail(i, "DB::checksum", err)
		}
		d.ts[i] = ts
		if more {
			return nil, d.fail(i, "DB::checksum", errors.New("records appear faster than they can be compared: try again later"))
		}
		for key, digest := range list {
			both := found[key]
			both[i] = digest
			found[key] = both
		}
	}
	for key, both := range found {
		if both[0] == both[1] {
			delete(found, key)
		}
	}
	return found, nil
}

// confirm separates the pending keys: those whose difference is certain, and those that have become
// equal.
//
// A difference is certain if two looks, at different times, find the same two records, and each
// side has received everything that the other side had at the first of the two looks. A key that
// changes between the looks stays pending. After the last round the rest stays undecided: these
// keys change all the time.
func (d *difference) confirm(ctx context.Context) error {
	for round := int64(0); len(d.pending) > 0 && round < d.rounds; round++ {
		passed, err := d.pass(ctx)
		if err != nil {
			return err
		}
		now, err := d.keys(ctx)
		if err != nil {
			return err
		}
		before := d.pending
		d.pending = map[string]digests{}
		for key, was := range before {
			switch is, different := now[key]; {
			case !different:
			case passed && is == was:
				d.certain[key] = is
			default:
				d.pending[key] = is
			}
		}
		if !passed {
			return nil
		}
	}
	return nil
}

// pass waits until each side that replicates has received everything up to the other side's latest
// time stamp. It returns false, with a line for people, when this takes longer than -wait.
func (d *difference) pass(ctx context.Context) (bool, error) {
	end := time.Now().Add(d.wait)
	replicating := false
	for i := range d.sides {
		for {
			at, replicates, err := d.position(ctx, i)
			if err != nil {
				return false, err
			}
			replicating = replicating || replicates
			if !replicates || at >= d.ts[1-i] {
				break
			}
			if time.Now().After(end) {
				d.note(fmt.Sprintf("%s has not received what %s had at ts=%d within %v: it is at ts=%d", d.names[i], d.names[1-i], d.ts[1-i], d.wait, at))
				return false, nil
			}
			if err := pause(ctx, pollPosition); err != nil {
				return false, err
			}
		}
	}
	if replicating {
		return true, nil
	}
	return true, pause(ctx, betweenLooks)
}

// position returns how far a side has followed its master's log.
func (d *difference) position(ctx context.Context, side int) (at uint64, replicates bool, err error) {
	rows, err := d.sides[side].Report(ctx)
	if err != nil {
		return 0, false, d.fail(side, "DB::report", err)
	}
	if len(rows["repl_master_host"]) == 0 {
		return 0, false, nil
	}
	at, err = strconv.ParseUint(string(rows["repl_timestamp"]), 10, 64)
	if err != nil {
		return 0, false, d.fail(side, "DB::report", err)
	}
	return at, true, nil
}

// note prints a line for people, the first time only.
func (d *difference) note(text string) {
	if !d.noted {
		d.noted = true
		fmt.Fprintf(d.stderr, "%s: %s\n", program, text)
	}
}
