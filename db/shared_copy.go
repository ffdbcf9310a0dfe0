package db

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/ulog"
)

// copyTold is how often the log says how far a file is.
const copyTold = 10 * time.Second

// withFile calls post with a file that has the records of one moment, and a stamp up to which all
// updates are among them: what Synchronize does with the file of a database of the server's own.
// The file is removed when post returns. tick returns a stamp for an engine without a log.
//
// Making the file may take minutes. Nobody waits for it, and it goes on when its client has gone,
// as a command does.
func (s *shared) withFile(tick func() ulog.Stamp, post func(path string, at ulog.Stamp) error) error {
	if s.copies.Write == nil {
		return dberr.ErrNotImplemented
	}
	var at ulog.Stamp
	err := s.copies.with(s.db.Name(), func(ctx context.Context, path string) (err error) {
		var records *moment
		if records, at, _, err = s.moment(); err != nil {
			return err
		}
		if at == 0 {
			at = tick()
		}
		err = records.writeFile(ctx, path, at)
		return errors.Join(err, records.Close())
	}, func(path string) error {
		if err := post(path, at); err != nil {
			return errors.Join(dberr.ErrPostproc, err)
		}
		return nil
	})
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: make room there, or name another place with -engine-copies", err)
	}
	if err != nil && !errors.Is(err, dberr.ErrPostproc) {
		s.db.logger.Error(fmt.Sprintf("making a file of the database %s for a command: %v", s.db.Name(), err))
	}
	return systemError(err)
}

// writeFile writes a database file that a server or kttimedmgr can open, like that of a backup.
func (m *moment) writeFile(ctx context.Context, path string, at ulog.Stamp) error {
	d := m.shared.db
	about := filestore.Meta{ID: filestore.NewID(), Clean: true, Persistent: d.persistent(), Stamp: at, DBID: d.index}
	return m.copies.Write(path, about, func(put func(key, value []byte) error) error {
		told, n := time.Now(), int64(0)
		err := m.Scan(false, func(key, value []byte) error {
			if ctx.Err() != nil {
				return errCopyEnded
			}
			n++
			if now := time.Now(); now.Sub(told) > copyTold {
				told = now
				d.logger.Info(fmt.Sprintf("making a file of the database %s for a command: %d of %d records", d.Name(), n, m.records))
			}
			return put(key, value)
		})
		if err == nil && n != m.records {
			err = fmt.Errorf("the database has %d records, but its count is %d", n, m.records)
		}
		return err
	})
}
