package server

import (
	"errors"
	"fmt"
	"io"
	"os"

	"gotycoon/db"
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

// restorer brings databases back from their snapshots at the start, before anybody uses them: files
// before the catalog is opened, databases in memory afterwards.
//
// For a database in memory, the snapshot is half of the data. The other half are the updates in the
// update log that came after the snapshot; RollForward replays them. Example: the snapshot has the
// stamp 100, the log has updates with 90, 110 and 120; the replay brings in 110 and 120.
//
// In three cases the log is not the other half, and is not replayed:
//
//   - There is no snapshot. The log may hold updates of earlier lives of the database, each of
//     which began empty too. If they were replayed, removed records would come back.
//   - The snapshot has a stamp above the log's last stamp: it was taken with another log.
//   - The snapshot is older than the last snapshot that the server has taken: somebody put it there
//     on purpose.
//
// Then the database goes on from the snapshot, or from nothing, and gets a new snapshot before
// anybody changes it: the stamp of the new snapshot tells the updates of this life from older ones.
type restorer struct {
	s         *snapshots // nil: there is nothing to restore
	databases []string   // their expressions
	opts      db.Options
}

// find returns the snapshots of each database, oldest first.
func (r *restorer) find() ([][]snapshot.File, error) {
	s := r.s
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
		if _, instead := r.former(f); f.Err != nil && !instead {
			return nil, &snapshotError{f.Path, unnamed(f.Err)}
		}
		found[f.Index] = append(found[f.Index], f)
		s.stats.taken(f.Index, f.Header.Stamp)
	}
	return found, nil
}

// former finds the snapshot before the newest one, where an update log continues it.
func (r *restorer) former(newest snapshot.File) (snapshot.File, bool) {
	if r.opts.LogDir == "" {
		return snapshot.File{}, false
	}
	return formerOf(newest)
}

// unnamed leaves out the file name of an error whose reader knows it.
func unnamed(err error) error {
	if damage, ok := errors.AsType[*snapshot.DamageError](err); ok {
		return fmt.Errorf("damaged at offset %d: %w", damage.Offset, damage.Err)
	}
	return err
}

// files finds the snapshots in the directory, if there is one, and makes of them the database files
// that are not there yet.
func (r *restorer) files() (found [][]snapshot.File, err error) {
	if r.s == nil {
		return nil, nil
	}
	if found, err = r.find(); err != nil {
		return nil, err
	}
	if err := r.s.own.read(); err != nil {
		return nil, err
	}
	if r.opts.Engine != nil {
		return found, nil
	}
	return found, r.restoreFiles(found)
}

// restoreFiles makes the database files that are not there yet from their snapshots. A file that is
// there has newer data.
func (r *restorer) restoreFiles(found [][]snapshot.File) error {
	for i, files := range found {
		x, err := expr.Parse(r.databases[i])
		if len(files) == 0 || err != nil || !x.Kind.OnDisk() {
			continue
		}
		err = r.restoreFile(i, x, files)
		switch newest := files[len(files)-1]; {
		case errors.Is(err, os.ErrExist):
			if err := r.s.own.leaveAlone(i, x.Path, files); err != nil {
				return err
			}
		case r.opts.ReadOnly: // the file is missing: the error comes when it is opened
		case err != nil:
			return namedError(newest.Path, err)
		case r.opts.LogDir != "":
			r.s.log.info("%s is complete up to the time stamp %d. Later updates in an update log can be brought in, while no server has the file "+
				"open, with: kttimedmgr recover -ts %[2]d -dbid %d %[1]s %[4]s", x.Path, newest.Header.Stamp, i, r.opts.LogDir)
		}
	}
	return nil
}

// restoreFile makes a database file, or returns os.ErrExist.
func (r *restorer) restoreFile(index int, x expr.Expr, files []snapshot.File) error {
	if r.opts.ReadOnly {
		_, err := os.Stat(x.Path)
		if err == nil {
			err = os.ErrExist
		}
		return err
	}
	if err := db.RestoreFile(x.Raw, r.opts, func(add func(key, value []byte) error) error { return r.load(files, false, add) }); err != nil {
		return err
	}
	return r.s.own.note(index, stampOf(files))
}

// namedError adds the file to an error that does not have it yet.
func namedError(path string, err error) error {
	if _, ok := errors.AsType[*snapshotError](err); ok {
		return err
	}
	return &snapshotError{path, err}
}

// load brings the records of a database's snapshots into it, the oldest snapshot first. With whole,
// a snapshot that lacks records is an error.
func (r *restorer) load(files []snapshot.File, whole bool, add func(key, value []byte) error) error {
	if len(files) > 1 {
		r.s.log.info("there are %d snapshot files of database %d: all are applied, the oldest first, and so records come back that had been "+
			"removed when newer ones were taken", len(files), files[0].Index)
	}
	for _, f := range files {
		h := f.Header
		r.s.log.system("applying a snapshot file: db=%d ts=%d count=%d size=%d", f.Index, h.Stamp, h.Count, h.Size)
		n, err := r.loadOne(f.Path, add)
		if err != nil {
			return &snapshotError{f.Path, unnamed(err)}
		}
		if n < h.Count && whole {
			return &snapshotError{f.Path, fmt.Errorf("it has %d records, but should have %d", n, h.Count)}
		}
		if n < h.Count {
			r.s.log.error("%s has %d records, but should have %d: it may have been cut off", f.Path, n, h.Count)
		}
	}
	return nil
}

func (r *restorer) loadOne(path string, add func(key, value []byte) error) (records int64, err error) {
	in, err := snapshot.Open(r.s.opts.FS, path)
	if err != nil {
		return 0, err
	}
	if in.Dump() { // replaced since the directory was read
		return 0, errors.Join(snapshot.ErrNoSnapshot, in.Close())
	}
	for {
		key, value, err := in.Next()
		if errors.Is(err, io.EOF) {
			return in.Count(), in.Close()
		}
		if err == nil {
			err = add(key, value)
		}
		if err != nil {
			return 0, errors.Join(err, in.Close())
		}
	}
}

// stampOf returns the instant of the newest of a database's snapshots, which are in order.
func stampOf(files []snapshot.File) ulog.Stamp {
	if len(files) == 0 {
		return 0
	}
	return files[len(files)-1].Header.Stamp
}
