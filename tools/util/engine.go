package util

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"gotycoon/db"
	"gotycoon/db/checksum"
	"gotycoon/db/engine/pg"
	"gotycoon/ulog"
)

// engineWord is a word behind "engine".
type engineWord struct {
	run         func(ctx context.Context, c *call, o *engineOptions) error
	least, most int      // arguments, of which the first one is the URL; most is -1 for any number
	options     []string // that it takes
}

// engineOptions are the options of all words: "ktutilmgr engine --help", the manual page and the
// completion know no word.
type engineOptions struct {
	sid        *int
	noLog, yes *bool
}

func engineWords() map[string]engineWord {
	return map[string]engineWord{
		"init":   {engineInit, 1, -1, []string{"sid", "no-log"}},
		"status": {engineStatus, 1, 1, nil},
		"check":  {engineCheck, 1, 1, nil},
		"load":   {engineLoad, 2, 3, nil},
		"renew":  {engineRenew, 1, 1, nil},
		"drop":   {engineDrop, 1, 1, []string{"yes"}},
	}
}

// engineTool sets up an engine that several servers share, and looks after it. The word and the URL
// may stand before the options or behind them.
func engineTool(ctx context.Context, c *call) error {
	o := &engineOptions{
		sid:   c.flags.Int("sid", 1, "init: the server ID of all servers, which the log of updates shows"),
		noLog: c.flags.Bool("no-log", false, "init: keep no log of updates, so that nobody can follow"),
		yes:   c.flags.Bool("yes", false, "drop: really remove all records of all databases"),
	}
	ahead := 0
	for ahead < min(2, len(c.raw)) && !strings.HasPrefix(c.raw[ahead], "-") {
		ahead++
	}
	first := c.raw[:ahead]
	c.raw = c.raw[ahead:]
	if err := c.parse(0, -1); err != nil {
		return err
	}
	args := slices.Concat(first, c.args)
	name := ""
	if len(args) > 0 {
		name, c.args = args[0], args[1:]
	}
	word, known := engineWords()[name]
	if !known {
		return usageError("the word behind it is init, status, check, load, renew or drop")
	}
	if err := word.fits(name, c); err != nil {
		return err
	}
	return pg.Advise(word.run(ctx, c, o))
}

// fits finds what is wrong with the arguments of a word.
func (w *engineWord) fits(name string, c *call) (wrong error) {
	c.flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(w.options, f.Name) {
			wrong = usageError(fmt.Sprintf("%s has no option -%s", name, f.Name))
		}
	})
	switch n := len(c.args); {
	case wrong != nil:
		return wrong
	case n < w.least:
		return usageError("an argument is missing")
	case w.most >= 0 && n > w.most:
		return usageError("there are too many arguments")
	}
	if err := pg.CheckURL(c.args[0]); err != nil {
		return usageError(err.Error())
	}
	return nil
}

// engineInit sets up an engine for all servers.
func engineInit(ctx context.Context, c *call, o *engineOptions) error {
	names := c.args[1:]
	if len(names) == 0 {
		return usageError("init: name the databases behind the URL, such as: users sessions")
	}
	if *o.sid < 1 || *o.sid > 65535 {
		return usageError("-sid: must be from 1 to 65535")
	}
	var plain []string
	for _, expr := range names {
		if strings.HasPrefix(expr, "-") {
			return usageError(fmt.Sprintf("%s is no name of a database, and options stand before the names", expr))
		}
		name, param, given := strings.Cut(expr, "#")
		if given && param != "ktopts=p" {
			return usageError(fmt.Sprintf("%s: a database in an engine has one parameter, #ktopts=p: its records never expire", expr))
		}
		if name == "" || strings.Contains(name, "/") || !utf8.ValidString(name) || slices.Contains(plain, name) {
			return usageError(fmt.Sprintf("%q: names of databases are different from each other, not empty, in UTF-8, and have no /", expr))
		}
		plain = append(plain, name)
	}
	made, err := pg.Init(ctx, c.args[0], pg.Setup{SID: uint16(*o.sid), Log: !*o.noLog, Databases: names})
	if err != nil {
		return err
	}
	if !made {
		_, err = fmt.Fprintln(c.out, "it was set up before, with the same databases: nothing has changed")
		return err
	}
	_, err = fmt.Fprintf(c.out, "made the schema gotycoon with %d databases: %s\nstart servers, as many as you like: ktserver -pldb URL\n",
		len(names), strings.Join(names, " "))
	return err
}

// engineStatus prints what an engine says of itself.
func engineStatus(ctx context.Context, c *call, _ *engineOptions) error {
	s, err := pg.ReadStatus(ctx, c.args[0])
	if err != nil {
		return err
	}
	role := "primary"
	if s.Standby {
		role = "standby: it takes no updates"
	}
	if s.ReadOnly && !s.Standby {
		role = "primary with default_transaction_read_only: it takes no updates"
	}
	fmt.Fprintf(c.out, "engine: PostgreSQL %s, %s\nconnection: %s\ndurability: %s\nserver ID: %d\n", s.Version, role, s.Link, s.Durability, s.SID)
	if s.Log {
		fmt.Fprintf(c.out, "log: %x, %d bytes, from %s to %s\n", s.LogID, s.LogBytes, moment(s.LogOldest), moment(s.LogNewest))
	} else {
		fmt.Fprintln(c.out, "log: none")
	}
	fmt.Fprintf(c.out, "lanes: %d of %d\n", s.Lanes, pg.MaxLanes)
	for i, name := range s.Databases {
		fmt.Fprintf(c.out, "database %d: %s, %d records, %d bytes\n", i, name, s.Records[i], s.Bytes[i])
	}
	if s.Public {
		fmt.Fprintln(c.out, "warning: "+pg.PublicWarning)
	}
	return nil
}

// moment is a stamp for people.
func moment(at ulog.Stamp) string {
	if at == 0 {
		return "the beginning"
	}
	return at.Time().UTC().Format(time.RFC3339)
}

// engineCheck reads every record, and compares the number of records with the engine's count.
func engineCheck(ctx context.Context, c *call, _ *engineOptions) error {
	return c.withEngine(ctx, func(_ *pg.Engine, catalog *db.Catalog) error {
		var wrong []error
		for i := range catalog.Len() {
			d := catalog.DB(i)
			sum, err := d.Freeze()
			if err != nil {
				return err
			}
			seen := int64(0)
			err = sum.Scan(func(_, _ []byte) error { seen++; return ctx.Err() })
			if err := errors.Join(err, sum.Close()); err != nil {
				return err
			}
			parts, err := checksum.Sum(d, &db.Pending{}, []checksum.Range{{}}, checksum.Options{})
			if err != nil {
				return err
			}
			digest := uint64(0)
			for _, p := range parts {
				digest += p.Sum
			}
			counted, err := d.Count(nil)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "%s: %d records, checksum %016x\n", d.Name(), seen, digest)
			if counted != seen {
				wrong = append(wrong, fmt.Errorf("%s: the engine counts %d records and has %d: servers that write meanwhile, or a lost count", d.Name(), counted, seen))
			}
		}
		return errors.Join(wrong...)
	})
}

// withEngine opens the engine at the first argument, and its databases. For how long its log is
// kept is for the servers to say.
func (c *call) withEngine(ctx context.Context, work func(e *pg.Engine, catalog *db.Catalog) error) error {
	e, err := pg.Open(ctx, c.args[0], pg.Options{Addr: program, KeepFor: math.MaxInt64, KeepBytes: math.MaxInt64})
	if err != nil {
		return err
	}
	setup := e.Setup()
	catalog, err := db.Open(setup.Databases, db.Options{Shared: e, SID: setup.SID})
	if err != nil {
		return errors.Join(err, e.Close())
	}
	err = work(e, catalog)
	return errors.Join(err, catalog.Close(), e.Close())
}

// engineRenew gives the log another identity.
func engineRenew(ctx context.Context, c *call, _ *engineOptions) error {
	id, skipped, err := pg.Renew(ctx, c.args[0])
	if err != nil {
		return err
	}
	if !skipped {
		const text = "warning: no lanes were left out, because few are left: a cas unique that a client remembers from what was lost may fit a record"
		if _, err := fmt.Fprintln(c.out, text); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(c.out, "the log has another identity now, %s: start the servers again; followers make a copy\n", id)
	return err
}

// engineDrop removes everything that gotycoon has in the engine.
func engineDrop(ctx context.Context, c *call, o *engineOptions) error {
	if !*o.yes {
		return usageError("drop: removes all records of all databases; say so with -yes")
	}
	if err := pg.Drop(ctx, c.args[0]); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.out, "removed the schema gotycoon")
	return err
}
