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

const (
	// ownFile is the file in which ownSnapshots are kept, in the directory of the snapshots.
	ownFile = "gotycoon.snapshots"

	// setAside is added to the name of a snapshot that would have been overwritten.
	setAside = ".set-aside"
)

// ownSnapshots knows which snapshots of database files this server has taken. A user has put the
// others into the directory.
//
// The problem: a snapshot of a database file is not loaded while the file is there, because the
// file has newer data. Then the server takes the next snapshot under the same name. If a user had
// copied a snapshot into the directory, to restore it, the copy would be overwritten unread.
//
// The rule: the server notes the time stamps of the snapshots that it takes. At the start it
// renames a snapshot with any other stamp (leaveAlone), before the next snapshot could overwrite
// it. The note is a JSON object from the index of the database to its stamps,
// {"0": [1700000000000000000]}. While a snapshot is written the note has two stamps: of the
// snapshot in the directory and of the snapshot that will replace it. A crash leaves either of them
// in the directory, and the note knows both:
//
//	step                             note       directory
//	the snapshot 100 is complete     100        100
//	noteNext                         100 200    100
//	the snapshot 200 is renamed      100 200    200
//	note                             200        200
type ownSnapshots struct {
	fs     vfs.FS
	dir    string
	log    logger
	stamps map[string][]ulog.Stamp // by index of the database
}

// read reads the stamps of the snapshots that servers have taken.
func (o *ownSnapshots) read() error {
	text, err := vfs.ReadFile(o.fs, filepath.Join(o.dir, ownFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &o.stamps)
	}
	if err != nil {
		return fmt.Errorf("read %s in the directory of snapshots: %w", ownFile, err)
	}
	return nil
}

// note writes the stamps of a database's snapshots.
func (o *ownSnapshots) note(index int, stamps ...ulog.Stamp) error {
	o.stamps[strconv.Itoa(index)] = stamps
	text, err := json.Marshal(o.stamps)
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(o.fs, filepath.Join(o.dir, ownFile), text)
}

// noteNext notes that a snapshot is about to be written, beside the last one.
func (o *ownSnapshots) noteNext(index int, at ulog.Stamp) error {
	stamps := o.stamps[strconv.Itoa(index)]
	return o.note(index, append(stamps[:min(1, len(stamps))], at)...)
}

// leaveAlone says that the snapshots of a database file are not loaded, because the file is there,
// and renames a snapshot that no server has taken, so that it is not overwritten.
func (o *ownSnapshots) leaveAlone(index int, path string, files []snapshot.File) error {
	for _, f := range files {
		own := slices.Contains(o.stamps[strconv.Itoa(index)], f.Header.Stamp)
		if filepath.Base(f.Path) != snapshot.Name(index) || own {
			o.log.info("%s is not applied: %s has its own data. To bring it in on purpose, stop the server and run: kttimedmgr load %s %s",
				f.Path, path, path, f.Path)
			continue
		}
		to := f.Path + setAside
		if _, err := o.fs.Stat(to); err == nil {
			to += "-" + strconv.FormatUint(uint64(f.Header.Stamp), 10)
		}
		err := o.fs.Rename(f.Path, to)
		if err == nil {
			err = o.fs.SyncDir(o.dir)
		}
		if err != nil {
			return fmt.Errorf("keep the snapshot %s from being overwritten: %w", f.Path, err)
		}
		o.log.system("a snapshot file was not applied, because %s has its own data, and is now %s. To bring it in on purpose, stop the server and "+
			"run: kttimedmgr load %[1]s %[2]s", path, to)
	}
	return nil
}
