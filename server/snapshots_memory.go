package server

import (
	"errors"
	"fmt"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/snapshot"
	"gotycoon/ulog"
)

// memory brings back the databases in memory, from their snapshots and the update log.
func (r *restorer) memory(c *db.Catalog, found [][]snapshot.File) error {
	if r.s == nil {
		return nil
	}
	r.s.catalog = c
	rolled := map[int]ulog.Stamp{}
	var fresh []int // databases that need a snapshot before anybody changes them
	for i, files := range found {
		d := c.DB(i)
		if d.Info().OnDisk {
			continue
		}
		at, former, err := r.loadMemory(d, files)
		if err != nil {
			return err
		}
		switch {
		case former:
			rolled[i] = at
			fresh = append(fresh, i)
		case len(files) == 0:
			fresh = append(fresh, i)
		case c.SnapshotOutdated(d, at):
			r.s.log.info("%s is older than the last snapshot that was taken: database %d goes on from it, without the later updates in the update log",
				files[len(files)-1].Path, i)
			fresh = append(fresh, i)
		default:
			rolled[i] = at
		}
	}
	if err := r.rollForward(rolled, fresh); err != nil {
		return err
	}
	r.keepForFiles(found)
	return nil
}

// loadMemory loads the snapshots of a database in memory and returns the stamp of the newest one.
// former says that the newest one is damaged, and the one before was loaded.
func (r *restorer) loadMemory(d *db.DB, files []snapshot.File) (at ulog.Stamp, former bool, err error) {
	if len(files) == 0 {
		return 0, false, nil
	}
	last := files[len(files)-1]
	f, spare := r.former(last)
	if last.Err == nil {
		if spare = spare && !r.s.catalog.SnapshotOutdated(d, stampOf(files)); spare && r.s.formers.lasting() {
			r.s.formers.former[d.Index()] = f.Header.Stamp
		}
		err = d.Load(func(add func(key, value []byte) error) error { return r.load(files, spare, add) })
		if err == nil || errors.Is(err, dberr.ErrNotImplemented) {
			return stampOf(files), false, nil
		}
	} else {
		err = &snapshotError{last.Path, unnamed(last.Err)}
	}
	if !spare {
		return 0, false, err
	}
	at, err = r.loadFormer(f, err)
	return at, true, err
}

// loadFormer loads the snapshot before a damaged one into a database in memory, and returns its
// stamp.
func (r *restorer) loadFormer(f snapshot.File, damage error) (ulog.Stamp, error) {
	r.s.log.error("a snapshot is damaged: database %d goes on from the snapshot before, %s, and the updates in the update log behind it: %v",
		f.Index, f.Path, damage)
	d := r.s.catalog.DB(f.Index)
	err := d.Unload()
	if err == nil {
		err = d.Load(func(add func(key, value []byte) error) error { return r.load([]snapshot.File{f}, true, add) })
	}
	if err != nil {
		return 0, fmt.Errorf("%w. The snapshot before it cannot be used either: %w", damage, err)
	}
	r.s.formers.damaged[f.Index] = true
	r.s.formers.former[f.Index] = f.Header.Stamp
	return f.Header.Stamp, nil
}

// keepForFiles holds the log for the snapshots of database files, where the log is removed by
// itself.
func (r *restorer) keepForFiles(found [][]snapshot.File) {
	log := r.s.catalog.Log()
	for i, files := range found {
		d := r.s.catalog.DB(i)
		if at := stampOf(files); log != nil && d.Info().OnDisk && at > 0 && at <= log.Last() {
			r.s.keep(d, at)
		}
	}
}

// rollForward replays the update log into the databases whose snapshots it continues, and takes the
// first snapshot of the others.
func (r *restorer) rollForward(rolled map[int]ulog.Stamp, fresh []int) error {
	s := r.s
	log := s.catalog.Log()
	if log == nil {
		return nil
	}
	if err := s.catalog.RollForward(rolled); err != nil {
		return err
	}
	for i := range s.catalog.Len() {
		switch at, ok := rolled[i]; {
		case !ok:
		case at > log.Last():
			fresh = append(fresh, i)
		default:
			s.keep(s.catalog.DB(i), at)
		}
	}
	s.catalog.BeforeRemoval(s.beforeRemoval)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range fresh {
		d := s.catalog.DB(i)
		if err := s.takeLocked(d, nil); err != nil {
			return fmt.Errorf("could not take the first snapshot of %s: %w", d.Info().Expr, err)
		}
	}
	return nil
}
