package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"gotycoon/internal/vfs"
)

// progressOf is how far the copy of a database is.
type progressOf struct {
	From   uint16 `json:"from"` // numbers of the database on both servers
	To     uint16 `json:"to"`
	Copied bool   `json:"copied"`
	After  []byte `json:"after,omitempty"` // go on behind this key, in a database with an order of keys
}

// migrationFile keeps a migration across restarts. The file is JSON and is replaced as a whole.
//
// The stamp is noted, and in the file, before the first record is copied. So whatever happens, the
// updates since then are applied after the copy, and an update between copy and log cannot be lost.
// Applying an update again does no harm: it has the complete new value, and the later ones of the
// same key follow.
type migrationFile struct {
	path string
	last time.Time // time of the latest save

	From      string       `json:"from"`
	To        string       `json:"to"`
	Stamp     uint64       `json:"stamp"` // every update up to here has been applied, or was there to be copied
	LogID     string       `json:"log,omitempty"`
	LogFile   uint64       `json:"logFile,omitempty"`
	Databases []progressOf `json:"databases"`
}

// migrationPath is the default name of the file.
func migrationPath(from, to string) string {
	return strings.NewReplacer(":", "_", "/", "_", "[", "", "]", "").Replace(from+"-"+to) + ".migrate"
}

// load reads the file of an earlier run; ok is false if there is none.
func (f *migrationFile) load() (ok bool, err error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	from, to := f.From, f.To
	if err := json.Unmarshal(text, f); err != nil {
		return false, fmt.Errorf("%s is no position of a migration: %w", f.path, err)
	}
	if f.From != from || f.To != to {
		return false, fmt.Errorf("%s belongs to the migration from %s to %s: name another file with -pos, or remove this one", f.path, f.From, f.To)
	}
	return true, nil
}

// write replaces the file.
func (f *migrationFile) write() error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = vfs.WriteFileAtomic(vfs.OS{}, f.path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save the position: %w", err)
	}
	f.last = time.Now()
	return nil
}

// at is the position in the source's log.
func (f *migrationFile) at() position {
	return position{stamp: f.Stamp, logID: f.LogID, file: f.LogFile}
}

// due implements keeper.
func (f *migrationFile) due(at position) bool {
	return at != f.at() && time.Since(f.last) >= saveEvery
}

// save implements keeper.
func (f *migrationFile) save(at position) error {
	if at == f.at() {
		return nil
	}
	f.Stamp, f.LogID, f.LogFile = at.stamp, at.logID, at.file
	return f.write()
}

// remove removes the file after the end of the migration.
func (f *migrationFile) remove() error {
	err := os.Remove(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
