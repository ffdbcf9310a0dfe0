package client

import (
	"context"
	"errors"
	"path"
	"strconv"
	"strings"
)

// Reach says whether a program that has the updates up to some time stamp can follow a server's
// update log without a gap.
type Reach struct {
	LogID string // identity of the log; empty: the server is not gotycoon
	Gap   bool   // updates newer than the time stamp have been removed, or may have been
}

// UlogReach asks whether the server's update log still has all updates newer than a time stamp. An
// answer that comes while Follow is running is also true for all updates that Follow has not
// delivered yet. If the server does not know the question, UlogReach looks at the names of the
// log's files; then Gap is also true if a gap cannot be ruled out.
func (c *Client) UlogReach(ctx context.Context, after uint64) (Reach, error) {
	out, err := c.DB("").Call(ctx, "ulog_reach", "ts", strconv.FormatUint(after, 10))
	var refused *Error
	switch {
	case err == nil:
		return Reach{LogID: string(out["id"]), Gap: out.Int("gap") != 0}, nil
	case !errors.As(err, &refused) || refused.Code != NotImplemented:
		return Reach{}, err
	}
	files, err := c.UlogList(ctx)
	return Reach{Gap: mayMiss(files, after)}, err
}

// mayMiss reports whether updates newer than after may have been in files that were removed. They
// cannot have been if the first file of the log is there, or a file that ends at or before after.
func mayMiss(files []LogFile, after uint64) bool {
	for _, f := range files {
		number, err := strconv.ParseUint(strings.TrimSuffix(path.Base(f.Path), ".ulog"), 10, 64)
		if err == nil && (number == 1 || f.Last <= after) {
			return false
		}
	}
	return len(files) > 0
}
