package remote

import (
	"context"
	"fmt"

	"gotycoon/client"
	"gotycoon/tools/show"
)

// What ranges of records are of, as -by names it.
const (
	byHash = "hash"
	byKey  = "key"
)

// checksum prints number and checksum of the records of a database, in parts.
func checksum(ctx context.Context, c *call) error {
	c.withDB().withHex().withHexOut().withJSON()
	by := c.flags.String("by", byHash, "ranges are of the keys' \"hash\", in 16 hexadecimal digits, or of the \"key\"")
	parts := c.flags.Integer("parts", 1, "divide the range into so many parts; by key up to twice as many, of about as many records each (default 1)")
	if err := c.parse(0, 2); err != nil {
		return err
	}
	if *by != byHash && *by != byKey {
		return usageError("-by: must be hash or key")
	}
	o := client.ChecksumOptions{Hash: *by == byHash, Parts: int(min(max(1, *parts), 1<<20))}
	if len(c.args) > 0 {
		o.Ranges = []client.Range{{From: c.args[0]}}
	}
	if len(c.args) > 1 {
		o.Ranges[0].To = c.args[1]
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	found, _, err := db.Checksum(ctx, o)
	if err != nil {
		return c.failed("DB::checksum", err)
	}
	for _, p := range found {
		if c.json {
			if err := c.printJSON(c.partObject(p)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(c.out, "%d\t%016x\t", p.Count, p.Sum) // Flush returns the error
		c.print([]byte(p.From))
		_ = c.out.WriteByte('\t')
		c.print([]byte(p.To))
		_ = c.out.WriteByte('\n')
	}
	return nil
}

// partObject is a part of a database for programs.
func (c *call) partObject(p client.Part) show.Object {
	o := show.Object{"count": p.Count, "sum": fmt.Sprintf("%016x", p.Sum)}
	o.Bytes("from", []byte(p.From), c.hexOut)
	o.Bytes("to", []byte(p.To), c.hexOut)
	return o
}
