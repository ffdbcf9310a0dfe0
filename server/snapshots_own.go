package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gotycoon/internal/vfs"
	"gotycoon/snapshot"
	"gotycoon/ulog"
)

// A snapshot of a database file is not loaded while the file is there, and the next one would take its place. One that a user has
// put there would be lost that way: it is set aside. To tell them apart, a file in the directory has the time stamps of those that
// servers have taken: a JSON object from the index of the database to the stamp of the last one, and of the one being written.
const ownSnapshots = "gotycoon.snapshots"

// setAside is added to the name of a snapshot that would have been overwritten.
const setAside = ".set-aside"

// readOwn reads the stamps of the snapshots that servers have taken.
func (s *snapshots) readOwn() error {
	text, err := vfs.ReadFile(s.opts.FS, filepath.Join(s.opts.Dir, ownSnapshots))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s.own)
	}
	if err != nil {
		return fmt.Errorf("read %s in the directory of snapshots: %w", ownSnapshots, err)
	}
	return nil
}

// noteOwn writes them. What a crash leaves of two calls, one before and one after a snapshot is written, has the stamp of whatever
// snapshot is there.
func (s *snapshots) noteOwn(index int, stamps ...ulog.Stamp) error {
	s.own[strconv.Itoa(index)] = stamps
	text, err := json.Marshal(s.own)
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(s.opts.FS, filepath.Join(s.opts.Dir, ownSnapshots), text)
}

// lastOwn is the stamp of the last snapshot taken, or nothing.
func (s *snapshots) lastOwn(index int) []ulog.Stamp {
	stamps := s.own[strconv.Itoa(index)]
	return stamps[:min(1, len(stamps))]
}

// leaveAlone says that the snapshots of a database file are not loaded, and keeps one that no server has taken from being overwritten.
func (s *snapshots) leaveAlone(index int, path string, files []snapshot.File) error {
	for _, f := range files {
		own := slices.Contains(s.own[strconv.Itoa(index)], f.Header.Stamp)
		if filepath.Base(f.Path) != snapshot.Name(index) || own {
			s.log.info("%s is not applied: %s has its own data. To bring it in on purpose, stop the server and run: kttimedmgr load %s %s",
				f.Path, path, path, f.Path)
			continue
		}
		to := f.Path + setAside
		if _, err := s.opts.FS.Stat(to); err == nil {
			to += "-" + strconv.FormatUint(uint64(f.Header.Stamp), 10)
		}
		err := s.opts.FS.Rename(f.Path, to)
		if err == nil {
			err = s.opts.FS.SyncDir(s.opts.Dir)
		}
		if err != nil {
			return fmt.Errorf("keep the snapshot %s from being overwritten: %w", f.Path, err)
		}
		s.log.system("a snapshot file was not applied, because %s has its own data, and is now %s. To bring it in on purpose, stop the server and "+
			"run: kttimedmgr load %[1]s %[2]s", path, to)
	}
	return nil
}
