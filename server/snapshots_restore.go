package server

import (
	"errors"
	"fmt"
	"io"
	"os"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/snapshot"
	"gotycoon/ulog"
)

// snapshotError says that a snapshot could not be loaded, and what to do.
type snapshotError struct {
	path string
	err  error
}

// Error names the file and the reason, and gives advice.
func (e *snapshotError) Error() string {
	return fmt.Sprintf("could not apply a snapshot: %s: %v. It is left as it is: put a good copy in its place, or move it away to start without it "+
		"(\"kttimedmgr load\" brings what can be read of it into a database file)", e.path, e.err)
}

// find returns the snapshots of each database, oldest first.
func (s *snapshots) find() ([][]snapshot.File, error) {
	files, err := snapshot.List(s.opts.FS, s.opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("could not open the directory of snapshots: %w", err)
	}
	snapshot.Oldest(files)
	found := make([][]snapshot.File, len(s.holds))
	for _, f := range files {
		if f.Index >= len(found) {
			continue
		}
		if f.Err != nil {
			return nil, &snapshotError{f.Path, unnamed(f.Err)}
		}
		found[f.Index] = append(found[f.Index], f)
		s.stats.taken(f.Index, f.Header.Stamp)
	}
	return found, nil
}

// unnamed leaves out the file name of an error whose reader knows it.
func unnamed(err error) error {
	if damage, ok := errors.AsType[*snapshot.DamageError](err); ok {
		return fmt.Errorf("damaged at offset %d: %w", damage.Offset, damage.Err)
	}
	return err
}

// findSnapshots finds the snapshots in the directory, if there is one, and makes of them the database files that are not there yet.
func (p *process) findSnapshots(o db.Options) ([][]snapshot.File, error) {
	p.snapshots = p.newSnapshots()
	if p.snapshots == nil {
		return nil, nil
	}
	found, err := p.snapshots.find()
	if err == nil {
		err = p.snapshots.readOwn()
	}
	if err != nil || o.Engine != nil {
		return found, err
	}
	return found, p.restoreFiles(found, o)
}

// restoreFiles makes the database files that are not there yet from their snapshots. Those that are there have newer data.
func (p *process) restoreFiles(found [][]snapshot.File, o db.Options) error {
	for i, files := range found {
		expr, err := expr.Parse(p.cfg.Databases[i])
		if len(files) == 0 || err != nil || !expr.Kind.OnDisk() {
			continue
		}
		err = p.restoreFile(i, expr, files, o)
		switch newest := files[len(files)-1]; {
		case errors.Is(err, os.ErrExist):
			if err := p.snapshots.leaveAlone(i, expr.Path, files); err != nil {
				return err
			}
		case o.ReadOnly: // the file is missing, as will be said when it is opened
		case err != nil:
			return namedError(newest.Path, err)
		case p.cfg.UpdateLog != "":
			p.log.info("%s is complete up to the time stamp %d. Later updates in an update log can be brought in, while no server has the file "+
				"open, with: kttimedmgr recover -ts %[2]d -dbid %d %[1]s %[4]s", expr.Path, newest.Header.Stamp, i, p.cfg.UpdateLog)
		}
	}
	return nil
}

// restoreFile makes a database file, or returns os.ErrExist.
func (p *process) restoreFile(index int, expr expr.Expr, files []snapshot.File, o db.Options) error {
	if o.ReadOnly {
		_, err := os.Stat(expr.Path)
		if err == nil {
			err = os.ErrExist
		}
		return err
	}
	if err := db.RestoreFile(expr.Raw, o, func(to *db.Loader) error { return p.load(files, to) }); err != nil {
		return err
	}
	return p.snapshots.noteOwn(index, stampOf(files))
}

// namedError adds the file to an error that does not have it yet.
func namedError(path string, err error) error {
	if _, ok := errors.AsType[*snapshotError](err); ok {
		return err
	}
	return &snapshotError{path, err}
}

// load brings the records of a database's snapshots into it, those of newer ones over those of older ones.
func (p *process) load(files []snapshot.File, to *db.Loader) error {
	if len(files) > 1 {
		p.log.info("there are %d snapshot files of database %d: all are applied, the oldest first, and so records come back that had been "+
			"removed when newer ones were taken", len(files), files[0].Index)
	}
	for _, f := range files {
		h := f.Header
		p.log.system("applying a snapshot file: db=%d ts=%d count=%d size=%d", f.Index, h.Stamp, h.Count, h.Size)
		n, err := p.loadOne(f.Path, to)
		if err != nil {
			return &snapshotError{f.Path, unnamed(err)}
		}
		if n < h.Count {
			p.log.error("%s has %d records, but should have %d: it may have been cut off", f.Path, n, h.Count)
		}
	}
	return nil
}

func (p *process) loadOne(path string, to *db.Loader) (records int64, err error) {
	r, err := snapshot.Open(p.snapshots.opts.FS, path)
	if err != nil {
		return 0, err
	}
	if r.Dump() { // replaced since the directory was read
		return 0, errors.Join(snapshot.ErrNoSnapshot, r.Close())
	}
	for {
		key, value, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Count(), r.Close()
		}
		if err == nil {
			err = to.Add(key, value)
		}
		if err != nil {
			return 0, errors.Join(err, r.Close())
		}
	}
}

// restoreMemory brings back the databases in memory: from their snapshots, and from the update log what came after.
func (p *process) restoreMemory(found [][]snapshot.File) error {
	s := p.snapshots
	if s == nil {
		return nil
	}
	s.catalog = p.catalog
	var rolled []db.Restored
	var fresh []int // databases that need a snapshot before anybody changes them
	for i, files := range found {
		d := p.catalog.DB(i)
		if d.OnDisk() {
			continue
		}
		if err := p.loadMemory(d, files); err != nil {
			return err
		}
		at := stampOf(files)
		switch {
		case len(files) == 0:
			fresh = append(fresh, i)
		case p.catalog.SnapshotOutdated(d, at):
			p.log.info("%s is older than the last snapshot that was taken: database %d goes on from it, without the later updates in the update log",
				files[len(files)-1].Path, i)
			fresh = append(fresh, i)
		default:
			rolled = append(rolled, db.Restored{DB: d, Stamp: at})
		}
	}
	return p.rollForward(rolled, fresh)
}

func (p *process) loadMemory(d *db.DB, files []snapshot.File) error {
	if len(files) == 0 {
		return nil
	}
	err := d.Load(func(to *db.Loader) error { return p.load(files, to) })
	if errors.Is(err, dberr.ErrNotImplemented) {
		return nil
	}
	return err
}

// stampOf is the instant of the newest of the snapshots, oldest first.
func stampOf(files []snapshot.File) ulog.Stamp {
	if len(files) == 0 {
		return 0
	}
	return files[len(files)-1].Header.Stamp
}

// rollForward replays the update log. A database without a snapshot that the log goes on from gets one now, so that no crash
// ever brings updates of an earlier life into it, or loses one of this life because its time stamp seems older.
func (p *process) rollForward(rolled []db.Restored, fresh []int) error {
	log := p.catalog.Log()
	if log == nil {
		return nil
	}
	if err := p.catalog.RollForward(rolled); err != nil {
		return err
	}
	s := p.snapshots
	for _, r := range rolled {
		if r.Stamp > log.Last() {
			fresh = append(fresh, r.DB.Index())
			continue
		}
		s.keep(r.DB, r.Stamp)
	}
	p.catalog.BeforeRemoval(s.beforeRemoval)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range fresh {
		if err := s.takeLocked(i, nil); err != nil {
			return fmt.Errorf("could not take the first snapshot of %s: %w", p.catalog.DB(i).Expr(), err)
		}
	}
	return nil
}
