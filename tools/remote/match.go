package remote

import (
	"context"

	"gotycoon/client"
)

// matchPrefix prints the keys that begin with the arguments.
func matchPrefix(ctx context.Context, c *call) error {
	return match(ctx, c, "DB::match_prefix", (*client.DB).MatchPrefix)
}

// matchRegex prints the keys that match the arguments.
func matchRegex(ctx context.Context, c *call) error {
	return match(ctx, c, "DB::match_regex", (*client.DB).MatchRegex)
}

func match(ctx context.Context, c *call, name string, find func(*client.DB, context.Context, string, int64) ([]string, error)) error {
	c.withDB().withSignals().withHex().withJSON()
	c.flags.Bool("px", false, "accepted, without an effect, as in the original")
	limit := c.flags.Integer("limit", -1, "at most so many keys per argument")
	if err := c.parse(0, -1); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	for _, arg := range c.args {
		keys, err := find(db, ctx, arg, *limit)
		if err != nil {
			return c.failed(name, err)
		}
		if err := c.printKeys(keys); err != nil {
			return err
		}
		db = db.With(client.Signals{}) // they are for one call
	}
	return nil
}

func (c *call) printKeys(keys []string) error {
	for _, key := range keys {
		if c.json {
			if err := c.printJSON(c.object(client.Record{Key: key}, false, false)); err != nil {
				return err
			}
			continue
		}
		_, _ = c.out.WriteString(key)
		if err := c.out.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}
