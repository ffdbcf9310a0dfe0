package script

import (
	"errors"
	"sync"

	"gotycoon/db"
	"gotycoon/db/dberr"
)

// file is a database that a script has opened for itself. It is closed by the script, when its
// object is collected as garbage, or with the pool.
type file struct {
	catalog *db.Catalog
	once    sync.Once
	err     error
}

func (f *file) close() error {
	f.once.Do(func() { f.err = f.catalog.Close() })
	return f.err
}

// files is the set of open files of a pool.
type files struct {
	mu   sync.Mutex
	open map[*file]struct{}
}

func (fs *files) add(f *file) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.open == nil {
		fs.open = map[*file]struct{}{}
	}
	fs.open[f] = struct{}{}
}

// drop closes a file.
func (fs *files) drop(f *file) error {
	fs.mu.Lock()
	delete(fs.open, f)
	fs.mu.Unlock()
	return f.close()
}

// close closes all files.
func (fs *files) close() error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var all error
	for f := range fs.open {
		all = errors.Join(all, f.close())
	}
	fs.open = nil
	return all
}

var (
	errOpened   error = &dberr.Error{Code: dberr.InvalidOperation, Message: "already opened"}
	errMissing  error = &dberr.Error{Code: dberr.NoRepository, Message: "open failed (file not found)"}
	errServed   error = &dberr.Error{Code: dberr.NoPermission, Message: "a script cannot open or close a database of the server"}
	errNotOpen  error = &dberr.Error{Code: dberr.InvalidOperation, Message: "not opened"}
	errOpenFail error = &dberr.Error{Code: dberr.NoRepository, Message: "open failed"}
)
