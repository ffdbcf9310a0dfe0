package replsql

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// op is what an update does, in the words of the lines.
type op string

const (
	opSet     op = "set"
	opRemove  op = "remove"
	opClear   op = "clear"
	opUnknown op = "unknown" // of a later version of the server; changes no record
)

// operands returns the number of columns in Base64 that follow a word.
func (o op) operands() (n int, known bool) {
	switch o {
	case opSet:
		return 2, true
	case opRemove, opUnknown:
		return 1, true
	case opClear:
		return 0, true
	}
	return 0, false
}

// change is one line:
//
//	stamp | sid | dbid | op [| key [| value]]
//
// The columns are separated by tabs. stamp, sid and dbid are decimal, key and value are in Base64.
type change struct {
	stamp   int64
	sid     int
	dbid    int
	op      op
	key     []byte
	value   []byte // without the expiration time
	expires *int64 // seconds since 1970; nil: never
}

var (
	errColumns = errors.New("is no line of ktremotemgr slave")
	errPrefix  = errors.New("has a value without an expiration time in front: name the databases with ktopts=p with -persistent")
)

// prefixLen is the length of the expiration time in front of a value: 40 bits, big-endian. All ones
// mean never.
const (
	prefixLen = 5
	never     = 1<<40 - 1
)

// parse reads a line without its end. persistent has the databases whose values have no expiration
// time in front.
func parse(line string, persistent map[int]bool) (c change, err error) {
	columns := strings.Split(line, "\t")
	if len(columns) < 4 {
		return c, errColumns
	}
	c.op = op(columns[3])
	operands, known := c.op.operands()
	if !known || len(columns) != 4+operands {
		return c, errColumns
	}
	if err := c.numbers(columns); err != nil {
		return c, err
	}
	if operands > 0 {
		if c.key, err = decode(columns[4]); err != nil {
			return c, err
		}
	}
	if operands > 1 {
		if c.value, err = decode(columns[5]); err != nil {
			return c, err
		}
		return c, c.split(persistent[c.dbid])
	}
	return c, nil
}

// numbers reads the first three columns. A stamp over 63 bits is refused, as in the log itself.
func (c *change) numbers(columns []string) error {
	stamp, err := strconv.ParseUint(columns[0], 10, 63)
	if err != nil || stamp == 0 {
		return fmt.Errorf("has no time stamp: %q", columns[0])
	}
	sid, sidErr := strconv.ParseUint(columns[1], 10, 16)
	dbid, dbidErr := strconv.ParseUint(columns[2], 10, 16)
	if sidErr != nil || dbidErr != nil {
		return errColumns
	}
	c.stamp, c.sid, c.dbid = int64(stamp), int(sid), int(dbid)
	return nil
}

func decode(column string) ([]byte, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(column)
	if err != nil {
		return nil, fmt.Errorf("has a column that is no Base64: %w", err)
	}
	return b, nil
}

// split takes the expiration time off the value.
func (c *change) split(persistent bool) error {
	if persistent {
		return nil
	}
	if len(c.value) < prefixLen {
		return errPrefix
	}
	var xt int64
	for _, b := range c.value[:prefixLen] {
		xt = xt<<8 | int64(b)
	}
	c.value = c.value[prefixLen:]
	if xt != never {
		c.expires = &xt
	}
	return nil
}
