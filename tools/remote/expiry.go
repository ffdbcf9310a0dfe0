package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"gotycoon/client"
	"gotycoon/tools/cli"
	"gotycoon/tools/show"
)

// ttl prints how many seconds a record has left.
func ttl(ctx context.Context, c *call) error {
	c.withDB().withSignals().withHex().withHexOut().withJSON()
	db, err := c.parseAndOpen(ctx, 1, 1)
	if err != nil {
		return err
	}
	_, expires, err := db.Check(ctx, c.args[0])
	if err != nil {
		return c.failed("DB::check", err)
	}
	left := int64(math.Ceil(max(0, time.Until(expires).Seconds())))
	if c.json {
		o := show.Object{}
		o.Bytes("key", []byte(c.args[0]), c.hexOut)
		if !expires.IsZero() {
			o["ttl"], o["xt"] = left, expires.Unix()
		}
		return c.printJSON(o)
	}
	if expires.IsZero() {
		_, err = fmt.Fprintln(c.out, never)
		return err
	}
	_, err = fmt.Fprintln(c.out, left)
	return err
}

// never is how a record that does not expire is shown, and what touch takes for one.
const never = "never"

// touch gives a record another expiration time, and leaves its value as it is.
func touch(ctx context.Context, c *call) error {
	if err := c.withDB().withHex().parse(1, 2); err != nil {
		return err
	}
	xt, err := touchTime(c.flags.Args()[1:]) // never in hexadecimal
	if err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	return c.failed("DB::touch", renew(ctx, db, c.args[0], xt))
}

// touchTime reads the argument of touch, and returns it as a parameter; empty: the record does not
// expire any more. 0 is refused, because it would remove the record.
func touchTime(args []string) (xt string, err error) {
	if len(args) == 0 || args[0] == never {
		return "", nil
	}
	var seconds int64
	if err := cli.Int(&seconds).Set(args[0]); err != nil || seconds == 0 {
		return "", usageError(`the time must be "never", seconds from now, or negative for a time since 1970`)
	}
	return strconv.FormatInt(seconds, 10), nil
}

// renew gives a record another expiration time. A server that has no procedure for that, such as
// the original, is asked for the value, which then replaces itself with cas: nobody's update is
// lost. When another client has changed the value in between, cas fails, and renew begins again.
func renew(ctx context.Context, db *client.DB, key, xt string) error {
	params := []string{"key", key}
	if xt != "" {
		params = append(params, "xt", xt)
	}
	_, err := db.Call(ctx, "touch", params...)
	for notImplemented(err) || errors.Is(err, client.ErrConflict) {
		var value []byte
		if value, err = db.Get(ctx, key); err != nil {
			return err
		}
		_, err = db.Call(ctx, "cas", append(params, "oval", string(value), "nval", string(value))...)
	}
	return err
}
