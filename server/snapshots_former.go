package server

import (
	"errors"
	"os"
	"path/filepath"

	"gotycoon/internal/vfs"
	"gotycoon/snapshot"
	"gotycoon/ulog"
)

// Why the snapshot before the newest one is kept.
//
// The problem: a database in memory is its newest snapshot and the updates of the log behind it. A
// disk may give back other bytes than were written. Nobody reads a snapshot before the next start,
// so the damage shows when the snapshot is all there is: the log in front of it was removed because
// the snapshot had those updates.
//
// The rule, where the log is removed by itself (-ulog-keep-…): the former snapshot keeps a second
// name, and the log is held from the stamp of the former snapshot. A start that finds the newest
// snapshot damaged takes the former one and replays the log from there. Nothing is missing then,
// and before anybody changes the database it gets a new snapshot, in the place of the damaged one,
// which is put aside.
//
//	step                          newest   former   the log is held from
//	the snapshot 100 is there     100      –        100
//	200 is about to be taken      100      100      100
//	200 is complete               200      100      100
//	300 is complete               300      200      200
//
// Without -ulog-keep-… nothing changes: there is one snapshot, the operator decides what is
// removed, and a damaged snapshot stops the start. The snapshots of database files are for people,
// who have the file too, so one of them is enough; but the log is held from it, or it would be of
// no use for bringing the database back to a later moment.

const (
	formerSuffix  = ".former"  // behind the name of a snapshot: the one before
	damagedSuffix = ".damaged" // behind the name of a snapshot that was put aside
)

// formers is what is known of the snapshots of each database of the command line. It is used by
// whoever takes snapshots, or restores databases that nobody uses yet.
type formers struct {
	dir      string
	log      logger
	lasting  func() bool  // the update log is removed by itself
	newest   []ulog.Stamp // stamp of the newest snapshot; 0: none that the log continues
	former   []ulog.Stamp // of the snapshot before; 0: there is none
	damaged  []bool       // the newest snapshot cannot be used
	nameless bool         // a file cannot have a second name
}

func newFormers(dir string, databases int, lasting func() bool, log logger) formers {
	return formers{
		dir: dir, log: log, lasting: lasting,
		newest: make([]ulog.Stamp, databases), former: make([]ulog.Stamp, databases), damaged: make([]bool, databases),
	}
}

// giveName gives a file a second name, in place of a file that has it. It does nothing where there
// is no file. The name is durable when the directory is synced.
func giveName(path, second string) error {
	tmp := second + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err := os.Link(path, tmp)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = os.Rename(tmp, second)
	_ = os.Remove(tmp) // where both names lead to one file, the system leaves both
	return err
}

// keepFormer gives the snapshot of a database in memory a second name before the next one takes its
// place. A damaged snapshot is put aside, and the former one stays. Where the file system knows no
// second names, there is no former snapshot. A snapshot that somebody has put there, to go on from
// it without the later updates of the log, is not kept either: the log does not continue it.
func (s *formers) keepFormer(index int) {
	path, suffix := filepath.Join(s.dir, snapshot.Name(index)), formerSuffix
	switch {
	case s.damaged[index]:
		suffix = damagedSuffix
	case !s.lasting() || s.newest[index] == 0:
		s.former[index] = 0
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.log.error("the snapshot before the newest one cannot be removed: %v", err)
		}
		return
	}
	if err := giveName(path, path+suffix); err != nil {
		if !s.nameless {
			s.log.error("the snapshot before the newest one is not kept: %v", err)
		}
		s.nameless, s.former[index] = true, 0
		return
	}
	if s.damaged[index] {
		s.damaged[index] = false
		return
	}
	s.former[index] = s.newest[index]
}

// formerOf finds the snapshot before the newest one of a database.
func formerOf(newest snapshot.File) (snapshot.File, bool) {
	f := snapshot.File{Path: newest.Path + formerSuffix, Index: newest.Index}
	if filepath.Base(newest.Path) != snapshot.Name(newest.Index) {
		return f, false
	}
	in, err := snapshot.Open(vfs.OS{}, f.Path)
	if err != nil {
		return f, false
	}
	f.Header = in.Header()
	dump := in.Dump()
	if err := in.Close(); err != nil || dump {
		return f, false
	}
	return f, newest.Err != nil || f.Header.Stamp < newest.Header.Stamp
}
