package timed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/tools/cli"
	"gotycoon/tools/show"
)

const program = "kttimedmgr"

// usageError is the error of a command line that makes no sense.
type usageError = cli.UsageError

// call is one run of a sub-command: its options, and the databases that it has open.
type call struct {
	flags  *cli.Flags
	raw    []string
	stdin  io.Reader
	out    *bufio.Writer
	stdout io.Writer // below out
	stderr io.Writer

	tryLock  bool   // -otl
	noRepair bool   // -onr
	ulog     string // directory; empty: updates are not logged
	ulim     *int64
	sid      *int64
	dbid     *int64
	hexIn    bool // -sx
	hexOut   bool // -px
	json     bool

	args     []string
	catalogs []*db.Catalog // what open has opened
}

const outBuffer = 64 << 10

func newCall(name string, args []string, stdin io.Reader, stdout, stderr io.Writer) *call {
	c := &call{flags: cli.New(name), raw: args, stdin: stdin, stdout: stdout, stderr: stderr}
	c.out = bufio.NewWriterSize(stdout, outBuffer)
	f := c.flags
	f.Bool("onl", false, "accepted: files are always locked")
	f.BoolVar(&c.tryLock, "otl", false, "fail at once when another process has the file open, instead of waiting for ten seconds")
	f.BoolVar(&c.noRepair, "onr", false, "do not insist on the update log of a file that was not closed; then updates may be missing")
	f.StringVar(&c.ulog, "ulog", "", "log the updates in this `directory`; the file's own log may be there too")
	c.ulim = f.Bytes("ulim", 0, "`size` limit of a log file (default 256m)")
	c.sid = f.Integer("sid", 0, "server ID in the log (default 0)")
	c.dbid = f.Integer("dbid", 0, "number of the database in the log (default 0)")
	return c
}

// withHex adds the option for arguments in hexadecimal.
func (c *call) withHex() *call {
	c.flags.BoolVar(&c.hexIn, "sx", false, "keys and values are hexadecimal")
	return c
}

// withHexOut adds the option for output in hexadecimal.
func (c *call) withHexOut() *call {
	c.flags.BoolVar(&c.hexOut, "px", false, "print hexadecimal")
	return c
}

// withJSON adds the option for output in JSON.
func (c *call) withJSON() *call {
	c.flags.BoolVar(&c.json, "json", false, show.JSONHelp)
	return c
}

// withExpiry adds the option for the expiration time, and returns a pointer to its value.
func (c *call) withExpiry() *int64 {
	return c.flags.Integer("xt", math.MaxInt64, "let records expire after so many seconds; negative: at this time in seconds since 1970")
}

// parse reads the options. There must be at least least arguments and at most most; a negative most
// means any number.
func (c *call) parse(least, most int) (err error) {
	if c.args, err = c.flags.ParseArgs(c.raw, least, most); err != nil {
		return err
	}
	switch {
	case *c.sid < 0 || *c.sid > math.MaxUint16:
		return usageError("-sid: must be 0 to 65535")
	case *c.dbid < 0 || *c.dbid > math.MaxUint16:
		return usageError("-dbid: must be 0 to 65535")
	}
	return nil
}

// data returns an argument that is a key or a value.
func (c *call) data(i int) []byte {
	if c.hexIn {
		return show.DecodeHex(c.args[i])
	}
	return []byte(c.args[i])
}

// failed gives the error of a call the form that scripts know. name is the name of the call in the
// original, path the database.
func (c *call) failed(name, path string, err error) error {
	if err == nil {
		return nil
	}
	return &callError{name, path, err}
}

// callError is the error of a call on a database.
type callError struct {
	name, path string
	err        error
}

// Error returns "NAME failed: PATH: CODE: NAME: MESSAGE".
func (e *callError) Error() string {
	reason := e.err
	var known *dberr.Error
	if errors.As(reason, &known) {
		reason = known
	} else {
		reason = &dberr.Error{Code: dberr.SystemError, Message: reason.Error()}
	}
	return fmt.Sprintf("%s failed: %s: %v", e.name, e.path, reason)
}

// Unwrap returns the cause.
func (e *callError) Unwrap() error { return e.err }

// firstError returns the first of two errors; a later error is mostly a consequence of the first.
func firstError(first, later error) error {
	if first != nil {
		return first
	}
	return later
}
