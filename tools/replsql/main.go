// Package replsql is ktreplsql: it keeps a table in PostgreSQL or SQLite that has the same records
// as a server. Its input are the lines of "ktremotemgr slave", which print the server's update log.
//
// # Exactly once
//
// The feed delivers a line at least once: after a crash of any of the programs some lines come
// again. A line that is applied twice can bring back an old value, or a record that a later line
// has removed, until the later lines come again too; and if two feeds run by mistake, for good.
//
// Therefore the time stamp of the last applied line is a row of a second table, and it changes in
// the same transaction as the records. Lines with a time stamp up to this position are skipped.
// With the position 20:
//
//	line    ts 10, set a=1      skipped: applied before the crash
//	line    ts 20, remove a     skipped
//	line    ts 30, set b=2      applied; the same transaction moves the position to 30
//
// It does not matter where a program is killed: either the transaction is in the database, with its
// position, or neither. Two ktreplsql with the same feed wait for each other at the row of the
// position. A file for the position would be simpler, but a crash between the commit and the write
// of the file would apply lines twice.
package replsql

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gotycoon/internal/version"
)

const program = "ktreplsql"

const about = `ktreplsql keeps a table of a database like the records of a server.

usage:
  ktremotemgr slave -uw -sid 65535 -ts $(ktreplsql position DATABASE) | ktreplsql [option ...] DATABASE
  ktreplsql position [option ...] DATABASE    print the time stamp behind which the table goes on
  ktreplsql version                           print the version

DATABASE is postgres://USER@HOST/NAME or sqlite:FILE.

options:
`

// tableName matches the permitted names of the table, with or without a schema.
var tableName = regexp.MustCompile(`^([a-z_][a-z0-9_]{0,47}\.)?[a-z_][a-z0-9_]{0,47}$`)

// command is one run.
type command struct {
	flags      *flag.FlagSet
	names      names
	batch      int
	databases  map[int]bool
	persistent map[int]bool
}

// Main runs ktreplsql with the arguments that follow the program's name. It returns the exit code:
// 0 when the input has ended and every line is in the table, otherwise 1.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := run(ctx, args, stdin, stdout, stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	default:
		fmt.Fprintf(stderr, "%s: %v\n", program, err)
	}
	return 1
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	if len(args) > 0 && strings.TrimLeft(args[0], "-") == "version" {
		_, err := fmt.Fprintln(stdout, version.Current())
		return err
	}
	ask := len(args) > 0 && args[0] == "position"
	if ask {
		args = args[1:]
	}
	c := newCommand()
	if err := c.parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			c.help(stdout)
		}
		return err
	}
	s, err := openStore(ctx, c.flags.Arg(0), c.names)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if !ask {
		f := feed{store: s, stderr: stderr, batch: c.batch, databases: c.databases, persistent: c.persistent}
		return f.run(ctx, stdin)
	}
	at, err := s.position(ctx)
	if err == nil {
		_, err = fmt.Fprintln(stdout, at)
	}
	return err
}

// newCommand defines the options.
func newCommand() *command {
	c := &command{flags: flag.NewFlagSet(program, flag.ContinueOnError), databases: map[int]bool{}, persistent: map[int]bool{}}
	f := c.flags
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.StringVar(&c.names.table, "table", "ktrecords", "`name` of the table; the positions are in NAME_position")
	f.StringVar(&c.names.feed, "feed", "main", "`name` of the feed, whose position it is: one for each server that a table is fed from; their databases need different numbers")
	f.IntVar(&c.batch, "batch", 1000, "most `lines` in a transaction")
	f.Func("db", "`numbers` of the databases to keep, with commas (default all)", list(c.databases))
	f.Func("persistent", "`numbers` of the databases with ktopts=p, whose values have no expiration time in front", list(c.persistent))
	return c
}

// list reads numbers with commas between them.
func list(into map[int]bool) func(string) error {
	return func(text string) error {
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.ParseUint(part, 10, 16)
			if err != nil {
				return errors.New("must be numbers of databases, with commas")
			}
			into[int(n)] = true
		}
		return nil
	}
}

func (c *command) help(out io.Writer) {
	fmt.Fprint(out, about) // whoever closes the output has read enough
	c.flags.SetOutput(out)
	c.flags.PrintDefaults()
}

func (c *command) parse(args []string) error {
	if err := c.flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w (%s -h explains the options)", err, program)
	}
	switch {
	case c.flags.NArg() != 1:
		return fmt.Errorf("give one database, behind the options (%s -h explains them)", program)
	case !tableName.MatchString(c.names.table):
		return errors.New("-table: must be small letters, digits and underscores")
	case c.batch < 1:
		return errors.New("-batch: must be at least 1")
	}
	return nil
}
