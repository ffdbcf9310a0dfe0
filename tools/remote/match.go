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
	found := []string{}
	for _, arg := range c.args {
		keys, err := find(db, ctx, arg, *limit)
		if err != nil {
			return c.failed(name, err)
		}
		found = append(found, keys...)
	}
	if c.json {
		return c.printJSON(found)
	}
	for _, key := range found {
		_, _ = c.out.WriteString(key + "\n") // Flush returns the error
	}
	return nil
}
