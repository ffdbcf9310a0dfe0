package ulog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gotycoon/internal/vfs"
)

// NameDatabases says which names the databases from number 0 on have from now on, and returns those
// that had other names. It is called before there are updates. An error means that the names cannot
// be noted. Where there is no file the log goes on without one: the next opening knows no names
// either, and takes all updates for those of other databases.
func (l *Log) NameDatabases(all []string) (changed []Renamed, err error) {
	path := filepath.Join(l.dir, namesName)
	n := &l.named
	before, err := vfs.ReadFile(l.fs, path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		n.Since, err = l.lastUpdate()
	case err == nil:
		err = json.Unmarshal(before, n)
	}
	if err != nil {
		return nil, fmt.Errorf("read the names of databases, %s: %w. If the file is removed, nobody can watch from an older time stamp", path, err)
	}
	changed = n.name(all, l.Last())
	text, err := json.MarshalIndent(n, "", " ")
	if text = append(text, '\n'); err == nil && !bytes.Equal(text, before) {
		err = vfs.WriteFileAtomic(l.fs, path, text)
	}
	if err != nil && before == nil {
		l.logger.Warn("the names of the databases cannot be noted beside the update log: " + err.Error())
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("note the names of databases: %w", err)
	}
	return changed, nil
}

// lastUpdate returns Last if the log has had an update, else 0.
func (l *Log) lastUpdate() (Stamp, error) {
	r, err := l.NewReader(0)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if _, err = r.Next(); errors.Is(err, io.EOF) {
		return 0, nil
	}
	return l.Last(), nil // also where the reader finds damage
}

// NamedSince returns the stamp up to which updates with a number may be those of another database
// than that which has the number now.
func (l *Log) NamedSince(number int) Stamp {
	for _, row := range l.named.Databases {
		if int(row.Number) == number {
			return row.Since
		}
	}
	return l.Last()
}
