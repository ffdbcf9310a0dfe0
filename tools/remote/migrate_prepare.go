package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gotycoon/client"
)

// migration is one run of migrate: the databases of a running server move to another one, which has
// what the first has within moments, until the clients are moved.
//
//	note the stamp ─► copy all databases ─► follow the log from the stamp ─► switch
//
// See migrationFile for why no update is lost between copy and log. Both servers may be originals:
// reading needs a cursor and 0xB1, and writing 0xB8, which an original offers to everybody.
type migration struct {
	*copier
	tail     *tail
	follower *follower
	lanes    []*lane

	ts       string        // -ts: what the target has up to this stamp
	once     bool          // there is no log, or nobody writes
	switches bool          // lead through the switch, then end
	quiet    time.Duration // without an update for so long, nobody writes any more
	near     time.Duration // lag at which the target has caught up
	verify   string        // how to compare in the end: all, none, or a number of records
	started  bool          // the file is of an earlier run
	to       identity      // as which the target is spoken to
	done     bool          // clients can move, or there is nothing left to do
}

// Values of -verify.
const (
	verifyAll  = "all"
	verifyNone = "none"
)

// some returns how many records -verify asks for, 0 for a word.
func (m *migration) some() int64 {
	n, err := strconv.ParseInt(m.verify, 10, 32)
	if err != nil {
		return 0
	}
	return n
}

// prepare finds out which databases move, and where an earlier run has ended.
func (m *migration) prepare(ctx context.Context) error {
	if err := m.pairs(ctx); err != nil {
		return err
	}
	f := m.file
	f.From, f.To = m.source.name, m.target.name
	if f.path == "" {
		f.path = migrationPath(f.From, f.To)
	}
	wanted := slices.Clone(f.Databases) // load reuses the array
	var err error
	if m.started, err = f.load(); err != nil {
		return err
	}
	if m.started {
		same := func(a, b progressOf) bool { return a.From == b.From && a.To == b.To }
		if !slices.EqualFunc(f.Databases, wanted, same) {
			return fmt.Errorf("%s belongs to a migration of other databases: name another file with -pos, or remove this one", f.path)
		}
		m.tell("going on from %s", f.path)
		m.clear = !m.merge // what a copy that has not ended has left
	} else if err := m.begin(ctx); err != nil {
		return err
	}
	for i, l := range m.lanes {
		l.progressOf = &f.Databases[i]
	}
	return nil
}

// begin notes the stamp, before anything is copied.
func (m *migration) begin(ctx context.Context) error {
	if m.ts == "" && !m.clear && !m.merge {
		if err := m.refuseRecords(ctx); err != nil {
			return err
		}
	}
	switch {
	case m.once:
	case m.ts != "":
		if _, err := m.logPosition(ctx); err != nil {
			return err
		}
		ts, err := parseStamp(m.ts)
		if err != nil {
			return err
		}
		m.file.Stamp = ts
		for i := range m.file.Databases {
			m.file.Databases[i].Copied = true
		}
	default:
		at, err := m.logPosition(ctx)
		if err != nil {
			return err
		}
		m.file.Stamp, m.file.LogID, m.file.LogFile = at.stamp, at.logID, at.file
	}
	return m.file.write()
}

// logPosition returns from where the log is followed after a copy that begins now. It fails if
// there is no log.
func (m *migration) logPosition(ctx context.Context) (position, error) {
	at, err := firstPosition(ctx, m.source.client)
	if errors.Is(err, client.ErrNoLog) {
		if shared := inEngine(ctx, m.source.client, err); shared != err {
			return at, fmt.Errorf("%s: %w; or stop whoever writes to them and use -once", m.source.name, shared)
		}
		return at, fmt.Errorf("%s: %w: start it with -ulog DIR and -sid NUMBER, or stop whoever writes to it and use -once", m.source.name, err)
	}
	if err != nil {
		return at, fmt.Errorf("read the update log of %s: %w", m.source.name, err)
	}
	return at, nil
}

// refuseRecords refuses a target that has records: they would stay beside those of the source.
func (m *migration) refuseRecords(ctx context.Context) error {
	for _, l := range m.lanes {
		rows, err := l.target.Status(ctx)
		if err != nil {
			return fmt.Errorf("DB::status failed: %s: %w", m.target.name, err)
		}
		if n := rows.Int("count"); n > 0 {
			return fmt.Errorf("%s has %d records in the database for %s: -clear removes them first, -merge keeps those that %s does not have", m.target.name, n, l.name, m.source.name)
		}
	}
	return nil
}

// oneServer reports whether source and target are one process. Where their first reports nearly say
// so it asks again, because the two clocks of a report are read one after the other, on a machine
// that may be busy: of some reports of one process two agree.
func (m *migration) oneServer(ctx context.Context, lives [2]life) (bool, error) {
	for range 20 {
		if lives[0].same(lives[1]) || !lives[0].nearly(lives[1]) {
			break
		}
		for i, e := range []endpoint{m.source, m.target} {
			rows, err := e.client.Report(ctx)
			if err != nil {
				return false, fmt.Errorf("DB::report failed: %s: %w", e.name, err)
			}
			lives[i] = lifeOf(rows)
		}
	}
	return lives[0].same(lives[1]), nil
}

// pairs finds the databases: all, each to that with the same number, or the arguments FROM=TO,
// which are names or numbers.
func (m *migration) pairs(ctx context.Context) error {
	var names [2][]string
	var lives [2]life
	for i, e := range []endpoint{m.source, m.target} {
		rows, err := e.client.Report(ctx)
		if err != nil {
			return fmt.Errorf("DB::report failed: %s: %w", e.name, err)
		}
		names[i], lives[i] = databaseNames(rows), lifeOf(rows)
	}
	// To clear the target would remove what is to be copied.
	same, err := m.oneServer(ctx, lives)
	if err != nil {
		return err
	}
	if m.source.name == m.target.name || same {
		return usageError(fmt.Sprintf("%s and %s are the same server", m.source.name, m.target.name))
	}
	pairs := m.args[2:]
	if len(pairs) == 0 {
		if len(names[1]) < len(names[0]) {
			return fmt.Errorf("%s has %d databases and %s only %d: start it with as many, or name the databases that move: DB or DB=DB", m.source.name, len(names[0]), m.target.name, len(names[1]))
		}
		for i := range names[0] {
			pairs = append(pairs, strconv.Itoa(i))
		}
	}
	for _, pair := range pairs {
		from, to, two := strings.Cut(pair, "=")
		if !two {
			to = from
		}
		a, err := databaseNumber(names[0], from, m.source.name)
		if err != nil {
			return err
		}
		b, err := databaseNumber(names[1], to, m.target.name)
		if err != nil {
			return err
		}
		for _, other := range m.file.Databases {
			if other.From == a || other.To == b {
				return usageError(fmt.Sprintf("%s: a database is named twice", pair))
			}
		}
		m.file.Databases = append(m.file.Databases, progressOf{From: a, To: b})
		if err := m.addLane(ctx, a, b, names[0][a]); err != nil {
			return err
		}
	}
	return nil
}

// databaseNumber finds a database by its number or name.
func databaseNumber(names []string, name, server string) (uint16, error) {
	n, err := strconv.Atoi(name)
	if err != nil {
		n = slices.Index(names, name)
	}
	if n < 0 || n >= len(names) {
		return 0, fmt.Errorf("%s has no database %q; it has %q", server, name, names)
	}
	return uint16(n), nil
}

// addLane prepares the way of a database.
func (m *migration) addLane(ctx context.Context, from, to uint16, name string) error {
	l := &lane{
		name:   fmt.Sprintf("%d (%s)", from, name),
		source: m.source.client.DB(strconv.Itoa(int(from))), target: m.target.client.DB(strconv.Itoa(int(to))),
	}
	l.store = &binaryStorer{m.target.client, to}
	if m.target.credentials { // of which the binary protocol has none
		l.store = &textStorer{l.target}
	}
	var err error
	if l.persistent, err = isPersistent(ctx, l.source); err != nil {
		return fmt.Errorf("DB::status failed: %s: %w", m.source.name, err)
	}
	m.lanes = append(m.lanes, l)
	return nil
}
