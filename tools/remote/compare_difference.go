package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"gotycoon/client"
)

// What ranges of records are of, as -by names it.
const (
	byHash = "hash"
	byKey  = "key"
)

const (
	firstParts = 1024 // into which a database is divided first; by hash four times as many, since each look reads all of it
	laterParts = 16   // into which each range that differs is divided then
	mostLooks  = 20   // each makes the ranges smaller; more are only needed when records come all the time
	mostRanges = 256  // that are looked into further when there is much that differs
	fewRecords = 5000 // whose keys are asked for
	mostKeys   = 4 * fewRecords

	// margin before its expiration in which a record is left out: one of the servers may have removed it already.
	margin = 5 * time.Second
)

const (
	pollPosition = 50 * time.Millisecond
	betweenLooks = 200 * time.Millisecond // where nobody replicates and so nothing is waited for
)

// pair is the two servers of a comparison, and how they are compared.
type pair struct {
	*call
	sides  [2]*client.Client
	names  [2]string // HOST:PORT
	by     string
	wait   time.Duration
	rounds int64
}

// connect prepares the two clients: of the two arguments, or of -host and -port and the one argument.
func (p *pair) connect() {
	first := net.JoinHostPort(cmp.Or(p.host, "localhost"), strconv.FormatInt(*p.port, 10))
	p.names = [2]string{first, p.args[0]}
	if len(p.args) == 2 {
		p.names = [2]string(p.args)
	}
	for i, addr := range p.names {
		p.sides[i] = client.New(addr, client.Options{Timeout: max(0, *p.timeout)})
	}
}

func (p *pair) close() {
	for _, side := range p.sides {
		_ = side.Close() // everything has been answered
	}
}

func (p *pair) fail(side int, name string, err error) error {
	return fmt.Errorf("%s failed: %s: %w", name, p.names[side], err)
}

// digests of one key on both sides; empty: there is no such record.
type digests [2]string

// difference is what is known of two databases.
type difference struct {
	*pair
	dbs  [2]*client.DB
	hash bool

	counts    [2]int64
	ranges    []client.Range // that differ
	different [2]int64       // records in them
	more      bool           // there are other ranges that differ, which are not looked into
	ts        [2]uint64      // of the last look
	noted     bool           // somebody was told that a slave does not catch up
	pending   map[string]digests
	certain   map[string]digests
}

func newDifference(p *pair, first, second string) *difference {
	return &difference{
		pair: p, hash: p.by == byHash, certain: map[string]digests{},
		dbs: [2]*client.DB{p.sides[0].DB(first), p.sides[1].DB(second)},
	}
}

// find finds out which keys differ and stay different. What a slave has merely not yet received is no difference: between the first
// look and the second one it has the time to.
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

// begin looks at everything: by key, or by hash where the database is in no order.
func (d *difference) begin(ctx context.Context) (err error) {
	parts := firstParts
	if d.hash {
		parts *= 4
	}
	d.counts, err = d.look(ctx, parts)
	if d.by == "" && !d.hash && notImplemented(err) {
		d.hash = true
		return d.begin(ctx)
	}
	return err
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

// look divides the ranges on the side that has more, asks the other one for the same, and keeps those that differ. It returns how
// many records each side has in all of them.
func (d *difference) look(ctx context.Context, parts int) (counts [2]int64, err error) {
	o := client.ChecksumOptions{Hash: d.hash, Ranges: d.ranges, Parts: parts, At: time.Now().Add(margin)}
	first := 0
	if d.different[1] > d.different[0] {
		first = 1
	}
	var found [2][]client.Part
	for _, i := range [...]int{first, 1 - first} {
		if found[i], d.ts[i], err = d.dbs[i].Checksum(ctx, o); err != nil {
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

// keep keeps the ranges that differ, and returns how many records both sides have in all.
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

// keys returns those that differ in the ranges.
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

// confirm tells differences that stay from those that are about to vanish. A key differs for certain when both sides have passed each
// other's time stamps since it was seen to, and have the same two records, or one and none, as then. Keys that change all the
// time are left undecided after some rounds.
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
			case !different: // any more
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

// pass waits until each side that replicates is behind the other's last time stamp. It returns false, and says so, when that takes too
// long.
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

// position is where a side is in the log of its master.
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

// note tells people once.
func (d *difference) note(text string) {
	if !d.noted {
		d.noted = true
		fmt.Fprintf(d.stderr, "%s: %s\n", program, text)
	}
}
