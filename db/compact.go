package db

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
)

// heedEvery is how often a call that waits asks whether it is to go on waiting.
const heedEvery = 100 * time.Millisecond

// A Compaction tells of the compactions of a file since it was opened.
type Compaction struct{ filestore.CompactionStats }

// String is a row for people; empty: there was none.
func (c Compaction) String() string {
	switch {
	case c.Running:
		return fmt.Sprintf("running copied=%d total=%d", c.Copied, c.Total)
	case c.Err != nil:
		return "failed: " + c.Err.Error()
	case c.Known:
		return fmt.Sprintf("done before=%d after=%d", c.Before, c.After)
	}
	return ""
}

// Rows are the figures as clients get them.
func (c Compaction) Rows() map[string]string {
	if c.Running {
		return map[string]string{"running": "1", "copied": strconv.FormatInt(c.Copied, 10), "total": strconv.FormatInt(c.Total, 10)}
	}
	rows := map[string]string{"running": "0"}
	if c.Known {
		rows["before"], rows["after"] = strconv.FormatInt(c.Before, 10), strconv.FormatInt(c.After, 10)
	}
	return rows
}

// errNoFile refuses the compaction of a database that has no file.
var errNoFile error = &dberr.Error{Code: dberr.InvalidOperation, Message: "only the file of a database on disk can be compacted"}

// Compaction returns the figures.
func (d *core) Compaction() (c Compaction) {
	if d.file != nil {
		c.CompactionStats = d.file.CompactionStats()
	}
	return c
}

// Compact begins to compact the database's file in the background, or joins the compaction that is
// under way; see "Compaction" in db/filestore/compact.go. It leaves so much of the disk free that
// no update is refused because of it.
func (d *core) Compact() error {
	if err := d.compactable(); err != nil {
		return err
	}
	_, err := d.file.Compact(d.compactOptions())
	return systemError(err)
}

// ResumeCompaction begins a compaction again that the latest process did not finish, and reports
// whether there is one.
func (d *core) ResumeCompaction() (begun bool, err error) {
	if d.compactable() != nil {
		return false, nil
	}
	c, err := d.file.ResumeCompaction(d.compactOptions())
	return c != nil, systemError(err)
}

func (d *core) compactable() error {
	switch {
	case d.file == nil:
		return errNoFile
	case d.readOnly:
		return dberr.ErrReadOnly
	}
	return nil
}

func (d *core) compactOptions() filestore.CompactOptions {
	return filestore.CompactOptions{Keep: d.gate.Keep}
}

// AwaitCompaction waits for the end of a compaction that is under way, but not for longer than
// most. The error is that of the latest compaction, if it has ended. An error of heed ends the
// wait, and the compaction goes on.
func (d *core) AwaitCompaction(heed Heed, most time.Duration) (Compaction, error) {
	if d.file == nil {
		return Compaction{}, errNoFile
	}
	if err := d.awaitCompaction(heed, d.file.RunningCompaction(), most); err != nil {
		return Compaction{}, err
	}
	c := d.Compaction()
	if c.Running {
		return c, nil
	}
	return c, systemError(c.Err)
}

// AbortCompaction ends a compaction, and waits until it has ended.
func (d *core) AbortCompaction(heed Heed) error {
	if d.file == nil {
		return errNoFile
	}
	c := d.file.RunningCompaction()
	if c == nil {
		return nil
	}
	c.Abort()
	if err := d.awaitCompaction(heed, c, forEver); err != nil {
		return err
	}
	if err := c.Err(); !errors.Is(err, filestore.ErrCompactAborted) {
		return systemError(err)
	}
	return nil
}

const forEver = 1 << 62 * time.Nanosecond

func (d *core) awaitCompaction(heed Heed, c *filestore.Compaction, most time.Duration) error {
	if c == nil || most <= 0 {
		return nil
	}
	ask := time.NewTicker(heedEvery)
	defer ask.Stop()
	end := time.Now().Add(most)
	for {
		select {
		case <-c.Done():
			return nil
		case now := <-ask.C:
			if err := heed.Now(); err != nil {
				return err
			}
			if !now.Before(end) {
				return nil
			}
		}
	}
}

// Bloated reports whether the database's file is at least as large as least, and more than ratio
// times as large as it would be after a compaction.
func (d *core) Bloated(ratio float64, least int64) bool {
	if d.compactable() != nil {
		return false
	}
	size, needed := d.file.NeededSize()
	return size >= least && float64(size) > ratio*float64(needed)
}
