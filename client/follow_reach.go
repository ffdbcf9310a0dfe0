package client

import (
	"context"
	"errors"
	"path"
	"strconv"
	"strings"
)

// Reach is what a server tells about its update log to a program that has seen it up to some time stamp.
type Reach struct {
	LogID string // identity of the log; empty: the server is none of ours, which have one
	Gap   bool   // updates newer than the time stamp have been removed, or may have been
}

// UlogReach tells whether the server's update log still has everything newer than a time stamp. What is asked while Follow goes on
// is true of all that Follow has not yet delivered. Of a server that does not know the question the names of the log's files are
// looked at: there Gap is true also when it is only not certain that nothing is missing.
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

// mayMiss tells whether files that are no longer listed may have held updates newer than after: neither the first file is there,
// nor any that ends before.
func mayMiss(files []LogFile, after uint64) bool {
	for _, f := range files {
		number, err := strconv.ParseUint(strings.TrimSuffix(path.Base(f.Path), ".ulog"), 10, 64)
		if err == nil && (number == 1 || f.Last <= after) {
			return false
		}
	}
	return len(files) > 0
}
