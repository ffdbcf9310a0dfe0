package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"gotycoon/client"
)

// copier copies the databases of the source: with the copy request (0xB6) of one moment, and of an
// original through a cursor, which passes over a database that is being changed. What changes
// behind the cursor comes with the log.
type copier struct {
	*writer
	source  endpoint
	file    *migrationFile
	clear   bool // remove what the target has
	merge   bool // let the target keep records that the source does not have
	cursors bool // the source does not know the copy request

	done  int64     // records of the present database
	since time.Time // beginning of its copy
}

// copyAll copies the databases that are not copied yet.
func (c *copier) copyAll(ctx context.Context, lanes []*lane) error {
	for _, l := range lanes {
		if l.Copied {
			continue
		}
		if err := c.copyOne(ctx, l); err != nil {
			return err
		}
		l.Copied, l.After = true, nil
		if err := c.file.write(); err != nil {
			return err
		}
		c.tell("copied %d records of database %s", c.done, l.name)
	}
	return nil
}

// copyOne copies a database. When the source goes away, it goes on behind the last key that the
// target has, or in a database without an order of keys from the beginning.
func (c *copier) copyOne(ctx context.Context, l *lane) error {
	c.done, c.since = 0, time.Now()
	for wait := firstPause; ; wait = min(2*wait, longPause) {
		if c.clear && l.After == nil {
			if err := c.writer.clear(ctx, l); err != nil {
				return err
			}
		}
		err := c.transfer(ctx, l)
		if err == nil {
			err = c.send(ctx, l)
		}
		if !errors.Is(err, client.ErrNetwork) || ctx.Err() != nil {
			return err
		}
		if wait == firstPause {
			fmt.Fprintf(c.stderr, "%s: %s: the copy of database %s has ended (%v); trying again\n", program, c.source.name, l.name, err)
		}
		l.batch = batch{}
		c.clear = !c.merge // a source in memory may have lost records that were copied
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

func (c *copier) transfer(ctx context.Context, l *lane) error {
	if c.cursors {
		return c.walk(ctx, l)
	}
	err := l.source.Copy(ctx, client.CopyOptions{
		From: l.After,
		Begin: func(info client.CopyInfo) error {
			l.ordered, l.persistent = info.Ascending, info.Persistent
			return nil
		},
		Visit: func(key, value []byte) error {
			if err := c.putStored(ctx, l, key, value); err != nil {
				return err
			}
			return c.copied(l, key)
		},
	})
	if errors.Is(err, client.ErrNoCopy) {
		c.cursors = true
		return c.walk(ctx, l)
	}
	return err
}

// walk copies a database through a cursor. In a database with an order it may begin behind a key.
func (c *copier) walk(ctx context.Context, l *lane) error {
	rows, err := l.source.Status(ctx)
	if err != nil {
		return fmt.Errorf("DB::status failed: %s: %w", c.source.name, err)
	}
	l.ordered = rows.Int("type")&orderedType != 0
	cursor := l.source.Cursor()
	defer cursor.Close()
	if l.After == nil {
		err = cursor.Jump(ctx)
	} else {
		err = cursor.JumpKey(ctx, string(l.After))
	}
	if errors.Is(err, client.ErrNoRecord) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", c.source.name, err)
	}
	for r, err := range cursor.Records(ctx) {
		if err != nil {
			return fmt.Errorf("read %s: %w", c.source.name, err)
		}
		if err := c.put(ctx, l, change{key: r.Key, value: r.Value, xt: client.At(r.Expires)}); err != nil {
			return err
		}
		if err := c.copied(l, []byte(r.Key)); err != nil {
			return err
		}
	}
	return nil
}

// orderedType is the bit in the type number of a database that all kinds with an order of keys
// have.
const orderedType = 1

// copied counts a record, and saves the place now and then, when the target has all records up to
// there.
func (c *copier) copied(l *lane, key []byte) error {
	c.done++
	if l.ordered && l.batch.items == 0 && time.Since(c.file.last) >= saveEvery {
		l.After = slices.Clone(key)
		if err := c.file.write(); err != nil {
			return err
		}
	}
	if c.done%batchRecords == 0 {
		rate := float64(c.done) / max(time.Since(c.since).Seconds(), 1e-3)
		c.progress("database %s: %d records copied, %.0f/s", l.name, c.done, rate)
	}
	return nil
}

// noServer is the server ID whose updates are left out of the log unless -sid says another: no
// server has it. The default of an original is 0, so its own updates may have this ID.
const noServer = math.MaxUint16

// before is how far firstPosition goes back: an update has its stamp a moment before a cursor can
// see it. Updates that are applied although they were copied do no harm.
const before = 2 * time.Second

// firstPosition returns from where the log of a server is to be followed after a copy that begins
// now: the newest update that the log's files have, or of an empty log a heartbeat.
//
// The position is not taken from a heartbeat otherwise. A server that is restarted with its clock
// set back may give its next updates stamps below a heartbeat, but never below an update of its
// log.
func firstPosition(ctx context.Context, c *client.Client) (position, error) {
	files, err := c.UlogList(ctx)
	if errors.Is(err, client.ErrNetwork) {
		return position{}, err
	}
	newest := uint64(0)
	for _, f := range files { // none if the client may not list them
		newest = max(newest, f.Last)
	}
	if newest == 0 {
		if newest, err = heartbeat(ctx, c); err != nil {
			return position{}, err
		}
	}
	at := position{stamp: newest - min(newest, uint64(before))}
	reach, err := c.UlogReach(ctx, at.stamp)
	if errors.Is(err, client.ErrNetwork) {
		return position{}, err
	}
	at.logID, at.file = reach.LogID, reach.File // empty if the client may not ask
	return at, nil
}

// heartbeat returns the time stamp of a heartbeat.
func heartbeat(ctx context.Context, c *client.Client) (uint64, error) {
	for u, err := range c.FollowLog(ctx, stampOf(time.Now()), noServer, false) {
		if err != nil {
			return 0, err
		}
		if u.Heartbeat {
			return u.TS, nil
		}
	}
	return 0, ctx.Err()
}

// isPersistent asks whether the values of a database have no expiration times (ktopts=p).
func isPersistent(ctx context.Context, db *client.DB) (bool, error) {
	const bit = 1 << 1
	rows, err := db.Status(ctx)
	if err != nil {
		return false, err
	}
	opts, err := strconv.ParseUint(string(rows["ktopts"]), 10, 32)
	return opts&bit != 0, err
}
