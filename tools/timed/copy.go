package timed

import (
	"context"
	"fmt"

	"gotycoon/tools/show"
)

// blockSize is what a copy counts in.
const blockSize = 8192

// copyFile makes a copy of a database file.
func copyFile(_ context.Context, c *call) error {
	if err := c.parse(2, 2); err != nil {
		return err
	}
	d, err := c.open(c.args[0], reads)
	if err != nil {
		return err
	}
	p := &blocks{Progress: show.NewProgress(c.out, c.stdout, c.stderr,
		show.ProgressOptions{Items: "blocks", Size: d.Size(), Every: 100, Ending: " (end)"})}
	size, err := d.CopyFile(c.args[1], p.add)
	p.add(-int(size) % blockSize & (blockSize - 1)) // the last block is not full
	p.End()
	if err != nil {
		return c.failed("DB::copy", c.args[0], err)
	}
	_, err = fmt.Fprintf(c.out, "%d blocks were merged successfully\n", (size+blockSize-1)/blockSize)
	return err
}

// blocks turns bytes into blocks.
type blocks struct {
	show.Progress
	bytes int
}

func (b *blocks) add(bytes int) {
	before := b.bytes / blockSize
	b.bytes += bytes
	b.Done(b.bytes/blockSize-before, bytes)
}
