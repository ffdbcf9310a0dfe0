package remote

import (
	"context"
	"fmt"
	"math"
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
		{"protocol", "only requests of this `protocol`, such as rpc, rest, binary, memcached"},
		{"command", "only requests with this `command`"},
		{"prefix", "only requests for keys that begin with this `text`"},
		{"peer", "only requests of clients whose `address` begins so"},
	} {
		o.texts[option[0]] = c.flags.String(option[0], "", option[1])
	}
	o.every = c.flags.Integer("every", 1, "only one of so many requests (default 1: each)")
	return o
}

// params returns the parameters of a procedure.
func (o *watchOptions) params() []string {
	params := []string{"every", strconv.FormatInt(max(1, *o.every), 10)}
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
	db, err := c.parseAndOpen(ctx, 0, 0)
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

// hotKeys prints the keys with the most requests.
func hotKeys(ctx context.Context, c *call) error {
	o := c.withHexOut().withWatch()
	most := c.flags.Integer("n", 10, "print so many keys (default 10)")
	length := c.flags.Seconds("time", 5*time.Second, "count for so many seconds, 60 at most (default 5)")
	db, err := c.parseAndOpen(ctx, 0, 0)
	if err != nil {
		return err
	}
	if *most < 1 || *length <= 0 || *length > time.Minute {
		return usageError("-n must be at least 1, -time more than 0 and at most 60")
	}
	rows, err := db.Call(ctx, "hotkeys", append(o.params(), "seconds", number(length.Seconds()), "max", strconv.FormatInt(*most, 10))...)
	if err != nil {
		return c.failed("DB::hotkeys", err)
	}
	over := int64(0)
	for i := 1; ; i++ {
		text, ok := rows[strconv.Itoa(i)]
		if !ok {
			break
		}
		f := fieldsOf(string(text))
		n, _ := strconv.ParseInt(f["over"], 10, 64) // 0 if the server says something else
		over = max(over, n)
		if err := c.printHot(f); err != nil {
			return err
		}
	}
	if c.json {
		return c.printJSON(show.Object{"requests": rows.Int("seen"), "left_out": rows.Int("left"), "seconds": length.Seconds()})
	}
	fmt.Fprintf(c.out, "%d requests in %v", rows.Int("seen"), *length)
	if over > 0 {
		fmt.Fprintf(c.out, "; no count is more than %d too high", over)
	}
	if left := rows.Int("left"); left > 0 {
		fmt.Fprintf(c.out, "; %d more were left out", left)
	}
	return c.out.WriteByte('\n')
}

// printHot prints a key with its count and its database.
func (c *call) printHot(f map[string]string) error {
	key, _ := unquoted(f["key"])
	db, _ := unquoted(f["db"])
	if c.json {
		o := show.Object{"db": db, "long": f["long"] == "1"}
		o.Bytes("key", []byte(key), c.hexOut)
		o.Text("count", f["count"])
		o.Text("over", f["over"])
		return c.printJSON(o)
	}
	fmt.Fprintf(c.out, "%s\t%s\t", f["count"], printable(db)) // Flush returns the error
	c.print([]byte(key))
	return c.out.WriteByte('\n')
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
