package db

import (
	"errors"
	"fmt"
	"os"

	"gotycoon/db/expr"
	"gotycoon/internal/vfs"
)

// Missing returns those of the databases that are files and are not there, although the files of an
// update log say that they were: a start would make empty ones, and the log would go on as if they
// had what it has. texts are the expressions of the databases, as on the command line.
func Missing(fs vfs.FS, logDir string, texts []string) (paths []string, err error) {
	ledger, err := readLedger(fs, logDir)
	if err != nil {
		return nil, err
	}
	known := map[uint16]bool{}
	for _, e := range ledger {
		known[e.DBID] = true
	}
	for i, text := range texts {
		e, err := expr.Parse(text)
		if err != nil || !e.Kind.OnDisk() || !known[uint16(i)] {
			continue // errors of Parse are reported when the database is opened
		}
		switch _, err := fs.Stat(e.Path); {
		case errors.Is(err, os.ErrNotExist):
			paths = append(paths, e.Path)
		case err != nil:
			return nil, fmt.Errorf("look for %s: %w", e.Path, err)
		}
	}
	return paths, nil
}
