package remote

import (
	"context"
	"fmt"
	"math"
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
	left := int64(math.Ceil(max(1, time.Until(expires).Seconds()))) // it is there to the end of its last second
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
	expires, err := touchTime(c.flags.Args()[1:]) // never in hexadecimal
	if err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	return c.failed("DB::touch", db.Touch(ctx, c.args[0], expires))
}

// touchTime reads the argument of touch; without one the record does not expire any more. 0 is
// refused: the protocols would remove the record, and a client means never.
func touchTime(args []string) (client.Expiry, error) {
	if len(args) == 0 || args[0] == never {
		return client.Never, nil
	}
	var seconds int64
	if err := cli.Int(&seconds).Set(args[0]); err != nil || seconds == 0 {
		return client.Never, usageError(`the time must be "never", seconds from now, or negative for a time since 1970`)
	}
	return client.Expiry(seconds), nil
}
