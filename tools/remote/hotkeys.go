package remote

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"gotycoon/tools/show"
)

// hotKeys prints the keys with the most requests.
func hotKeys(ctx context.Context, c *call) error {
	o := c.withHexOut().withWatch()
	most := c.flags.Integer("n", 10, "print so many keys (default 10)")
	length := c.flags.Seconds("time", 5*time.Second, "count for so many seconds, 60 at most (default 5)")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	switch {
	case *most < 1:
		return usageError("-n: must be at least 1")
	case *length <= 0 || *length > time.Minute:
		return usageError("-time: must be more than 0 and at most 60")
	}
	if err := o.check(); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
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
