package remote

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"gotycoon/client"
	"gotycoon/tools/show"
)

// Exit codes of compare beside 0 for equal and 1 for a failure.
const (
	exitDiffers   = exitStatus(2)
	exitUndecided = exitStatus(3)
)

// comparison is one run of compare.
type comparison struct {
	pair
	other string // -db2: the second server's database, if it has another name
	list  bool   // -keys
	some  int64  // -sample: look at so many records only; 0: at all
}

// compare reports whether two servers have the same records. See difference for the method.
func compare(ctx context.Context, c *call) error {
	p := &comparison{pair: pair{call: c.withDB().withHexOut().withJSON()}}
	c.flags.StringVar(&p.other, "db2", "", "`name` or number of the second server's database (default that of -db)")
	c.flags.StringVar(&p.by, "by", "", "narrow down by ranges of the \"key\" or of its \"hash\" (default: by key where the database is in that order)")
	c.flags.BoolVar(&p.list, "keys", false, "list the keys that differ: < only in the first, > only in the second, ! another value or expiration time")
	some := c.flags.Integer("sample", 0, "look at about so many records of each database only, chosen at random (default: at all)")
	wait := c.flags.Seconds("wait", 30*time.Second, "wait so many seconds for a slave to receive what the other had when they differed (default 30)")
	rounds := c.flags.Integer("rounds", 10, "look so often whether a difference stays; records that change all the time stay undecided (default 10)")
	if err := c.parse(1, 2); err != nil {
		return err
	}
	p.wait, p.rounds, p.some = *wait, *rounds, *some
	switch {
	case p.some < 0:
		return usageError("-sample: must not be negative")
	case p.by != "" && p.by != byHash && p.by != byKey:
		return usageError("-by: must be key or hash")
	case p.other != "" && p.db == "":
		return usageError("-db2: needs -db")
	case p.wait < 0:
		return usageError("-wait: must not be negative")
	case p.rounds < 1:
		return usageError("-rounds: must be at least 1")
	}
	defer p.close()
	if err := p.connect(); err != nil {
		return err
	}
	return p.run(ctx)
}

// run compares one database, or with no -db all databases. The worst verdict decides the exit code.
func (p *comparison) run(ctx context.Context) error {
	databases := []string{p.db}
	if p.db == "" {
		var err error
		if databases, err = p.all(ctx); err != nil {
			return err
		}
	}
	var worst verdict
	for _, db := range databases {
		v, err := p.database(ctx, db)
		if err != nil {
			return err
		}
		worst = max(worst, v)
	}
	return worst.exit()
}

// all returns the numbers of the databases. Both servers must have the same number of databases.
func (p *comparison) all(ctx context.Context) (numbers []string, err error) {
	var counts [2]int
	for i, side := range p.sides {
		rows, err := side.Report(ctx)
		if err != nil {
			return nil, p.fail(i, "DB::report", err)
		}
		counts[i] = len(databaseNames(rows))
	}
	if counts[0] != counts[1] {
		return nil, fmt.Errorf("%s has %d databases and %s has %d: choose one with -db", p.names[0], counts[0], p.names[1], counts[1])
	}
	for i := range counts[0] {
		numbers = append(numbers, strconv.Itoa(i))
	}
	return numbers, nil
}

// verdict is the result for a database, ascending from good to bad.
type verdict int

const (
	equal verdict = iota
	undecided
	differs
)

// exit returns the exit code, nil for equal.
func (v verdict) exit() error {
	switch v {
	case differs:
		return exitDiffers
	case undecided:
		return exitUndecided
	}
	return nil
}

// database compares one database and prints its line: name, verdict, number of records on both
// sides, number of keys that differ.
func (p *comparison) database(ctx context.Context, name string) (verdict, error) {
	d := newDifference(&p.pair, name, cmp.Or(p.other, name))
	if p.some > 0 {
		if err := p.sample(ctx, d); err != nil {
			return 0, err
		}
	} else if err := d.find(ctx); err != nil {
		return 0, err
	}
	v, word := equal, "equal"
	switch {
	case len(d.certain) > 0:
		v, word = differs, "differs"
	case len(d.pending) > 0 || d.more:
		v, word = undecided, "undecided"
	}
	p.printResult(name, word, d)
	if p.list {
		p.printKeys(d.certain)
		p.printKeys(d.pending)
	}
	return v, p.out.Flush()
}

// sample looks at some records. The counts of the line are the number of keys that it looked at.
func (p *comparison) sample(ctx context.Context, d *difference) error {
	s := &sampling{pair: &p.pair, size: p.some}
	for i, side := range p.sides {
		s.dbs[i] = side.DB(d.db[i])
	}
	looked, certain, err := s.find(ctx)
	d.counts, d.certain = [2]int64{int64(looked), int64(looked)}, certain
	return err
}

// printResult prints the line of a database. An error of the output comes back from Flush.
func (p *comparison) printResult(name, word string, d *difference) {
	keys, atLeast := len(d.certain)+len(d.pending), ""
	if d.more {
		atLeast = ">="
	}
	if p.json {
		o := show.Object{"db": name, "result": word, "counts": d.counts, "keys": keys, "more": d.more}
		_ = p.printJSON(o) // Flush returns the error
		return
	}
	fmt.Fprintf(p.out, "%s\t%s\t%d\t%d\t%s%d\n", name, word, d.counts[0], d.counts[1], atLeast, keys)
}

// printKeys prints keys that differ, each with a mark: "<" only in the first server, ">" only in
// the second, "!" in both, with another value or expiration time.
func (p *comparison) printKeys(keys map[string]digests) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		mark := "!"
		switch d := keys[key]; {
		case d[1] == "":
			mark = "<"
		case d[0] == "":
			mark = ">"
		}
		if p.json {
			o := show.Object{"differs": mark}
			o.Bytes("key", []byte(key), p.hexOut)
			_ = p.printJSON(o) // Flush returns the error
			continue
		}
		fmt.Fprintf(p.out, "%s\t", mark)
		p.print([]byte(key))
		_ = p.out.WriteByte('\n')
	}
}

// checksum prints the number and the checksum of the records of a database, in parts.
func checksum(ctx context.Context, c *call) error {
	c.withDB().withHex().withHexOut().withJSON()
	by := c.flags.String("by", byHash, "ranges are of the keys' \"hash\", in 16 hexadecimal digits, or of the \"key\"")
	parts := c.flags.Integer("parts", 1, "divide the range into so many parts; by key up to twice as many, of about as many records each (default 1)")
	if err := c.parse(0, 2); err != nil {
		return err
	}
	if *by != byHash && *by != byKey {
		return usageError("-by: must be hash or key")
	}
	if *parts < 1 {
		return usageError("-parts: must be at least 1")
	}
	o := client.ChecksumOptions{Hash: *by == byHash, Parts: int(min(*parts, 1<<20))}
	if len(c.args) > 0 {
		o.Ranges = []client.Range{{From: c.args[0]}}
	}
	if len(c.args) > 1 {
		o.Ranges[0].To = c.args[1]
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	found, _, err := db.Checksum(ctx, o)
	if err != nil {
		return c.failed("DB::checksum", err)
	}
	for _, p := range found {
		if c.json {
			if err := c.printJSON(c.partObject(p)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(c.out, "%d\t%016x\t", p.Count, p.Sum) // Flush returns the error
		c.print([]byte(p.From))
		_ = c.out.WriteByte('\t')
		c.print([]byte(p.To))
		_ = c.out.WriteByte('\n')
	}
	return nil
}

// partObject makes the JSON object of a part.
func (c *call) partObject(p client.Part) show.Object {
	o := show.Object{"count": p.Count, "sum": fmt.Sprintf("%016x", p.Sum)}
	o.Bytes("from", []byte(p.From), c.hexOut)
	o.Bytes("to", []byte(p.To), c.hexOut)
	return o
}
