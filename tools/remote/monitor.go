package remote

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gotycoon/client"
	"gotycoon/tools/show"
)

// watchOptions are the options that choose which requests monitor and hotkeys look at.
type watchOptions struct {
	*call
	texts map[string]*string // by the names of the server's parameters
	every *int64
}

// withWatch adds the options.
func (c *call) withWatch() *watchOptions {
	o := &watchOptions{call: c.withDB().withJSON(), texts: map[string]*string{}}
	for _, option := range [][2]string{
		{"protocol", "only requests of this `protocol`: " + strings.Join(measured(), ", ")},
		{"command", "only requests with this `command`"},
		{"prefix", "only requests for keys that begin with this `text`"},
		{"peer", "only requests of clients whose `address` begins so"},
	} {
		o.texts[option[0]] = c.flags.String(option[0], "", option[1])
	}
	o.every = c.flags.Integer("every", 1, "only one of so many requests (default 1: each)")
	return o
}

// measured are the protocols whose requests a server measures.
func measured() []string {
	return []string{"rpc", "rest", "binary", "memcached", "counter", "lock", "sequence", "quota"}
}

// check finds options that would let nothing through, or have no meaning.
func (o *watchOptions) check() error {
	if name := *o.texts["protocol"]; o.flags.Changed("protocol") && !slices.Contains(measured(), name) {
		return usageError(fmt.Sprintf("-protocol: there is no %q; it is one of %s", name, strings.Join(measured(), ", ")))
	}
	if *o.every < 1 {
		return usageError("-every: must be at least 1")
	}
	return nil
}

// params returns the parameters of a procedure.
func (o *watchOptions) params() []string {
	params := []string{"every", strconv.FormatInt(*o.every, 10)}
	for name, text := range o.texts {
		if *text != "" {
			params = append(params, name, *text)
		}
	}
	if o.flags.Changed("db") {
		params = append(params, "database", o.db)
	}
	return params
}

// monitor prints the requests of a server while they are served. It asks again and again on one
// connection, where the server keeps what comes in between.
func monitor(ctx context.Context, c *call) error {
	o := c.withWatch()
	failed := c.flags.Bool("failed", false, "only requests that have failed; a record that is not there is no failure")
	most := c.flags.Integer("n", math.MaxInt64, "print so many requests and end (default: until Ctrl-C)")
	limit := c.flags.Seconds("time", math.MaxInt64, "end after so many seconds (default: never)")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	switch {
	case *most < 1:
		return usageError("-n: must be at least 1")
	case *limit <= 0:
		return usageError("-time: must be more than 0; without it the requests are shown until Ctrl-C")
	}
	if err := o.check(); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	params := o.params()
	if *failed {
		params = append(params, "failed", "")
	}
	end := time.Now().Add(min(*limit, math.MaxInt64/2))
	for n := int64(0); n < *most && time.Now().Before(end); {
		wait := min(time.Until(end), time.Second)
		rows, err := db.Call(ctx, "monitor", append(params, "seconds", number(wait.Seconds()), "max", strconv.FormatInt(min(*most-n, 1000), 10))...)
		if ctx.Err() != nil {
			return nil // Ctrl-C in a shell
		}
		if err != nil {
			return c.failed("DB::monitor", err)
		}
		if n, err = c.printRequests(rows, n); err != nil {
			return err
		}
	}
	return nil
}

// printRequests prints the requests of an answer and adds their number to n.
func (c *call) printRequests(rows client.Rows, n int64) (int64, error) {
	for i := 1; ; i++ {
		text, ok := rows[strconv.Itoa(i)]
		if !ok {
			break
		}
		if err := c.printRequest(fieldsOf(string(text))); err != nil {
			return n, err
		}
		n++
	}
	if missed := rows.Int("missed"); missed > 0 {
		fmt.Fprintf(c.stderr, "%s: %d more requests came too fast to be shown (-every shows one of so many)\n", program, missed)
	}
	return n, c.out.Flush()
}

// printRequest prints a request: a line, or an object.
func (c *call) printRequest(f map[string]string) error {
	seconds, _ := strconv.ParseFloat(f["time"], 64) // 0 if the server says something else
	key, cut := unquoted(f["key"])
	db, _ := unquoted(f["db"])
	if c.json {
		o := show.Object{"protocol": f["protocol"], "command": f["command"], "peer": f["peer"], "failed": f["failed"] == "1"}
		for _, name := range []string{"time", "in", "out"} {
			o.Text(name, f[name])
		}
		if db != "" {
			o["db"] = db
		}
		if key != "" {
			o.Bytes("key", []byte(key), false)
		}
		if cut != "" {
			o.Text("key_length", cut)
		}
		return c.printJSON(o)
	}
	line := fmt.Sprintf("%s %s %s %s", time.UnixMicro(int64(seconds*1e6)).Format("15:04:05.000000"), f["peer"], f["protocol"], f["command"])
	if db != "" {
		line += " db=" + printable(db)
	}
	if key != "" {
		line += " key=" + f["key"]
	}
	line += " in=" + f["in"] + " out=" + f["out"]
	if f["failed"] == "1" {
		line += " failed"
	}
	_, err := fmt.Fprintln(c.out, line)
	return err
}

// fieldsOf reads fields NAME=VALUE with blanks between them. A value that begins with a quote may
// have blanks in it.
func fieldsOf(text string) map[string]string {
	fields := map[string]string{}
	for text != "" {
		name, rest, _ := strings.Cut(text, "=")
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil || rest[0] != '"' {
			quoted = ""
		}
		tail, next, _ := strings.Cut(rest[len(quoted):], " ")
		fields[name], text = quoted+tail, next
	}
	return fields
}

// unquoted returns the text that a quoted field stands for, and what is behind it: "..." and the
// length of a key that was cut, of which it returns the number.
func unquoted(field string) (text, length string) {
	quoted, err := strconv.QuotedPrefix(field)
	if err != nil {
		return field, ""
	}
	text, _ = strconv.Unquote(quoted) // QuotedPrefix has checked it
	return text, strings.TrimPrefix(field[len(quoted):], "...")
}
