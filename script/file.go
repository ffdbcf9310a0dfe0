package script

import (
	"errors"
	"os"
	"runtime"

	"gotycoon/db"
	"gotycoon/db/expr"
)

// Modes of open.
const openReader, openWriter, openCreate, openTruncate = 1, 2, 4, 8

// openFile opens a database of the script's own.
func (h *handle) openFile(path string, mode int64) error {
	switch {
	case h.served:
		return errServed
	case h.db != nil:
		return errOpened
	}
	e, err := expr.Parse(path)
	if err != nil {
		return err
	}
	writer := mode&(openWriter|openCreate|openTruncate) != 0
	if _, err := os.Stat(e.Path); e.Kind.OnDisk() && mode&openCreate == 0 && err != nil {
		return errMissing
	}
	catalog, err := db.Open([]string{path}, db.Options{ReadOnly: !writer, TryLock: true, Logger: h.s.pool.opts.Logger})
	if err != nil {
		return err
	}
	f := &file{catalog: catalog}
	h.s.pool.files.add(f)
	h.db, h.file = catalog.DB(0), f
	runtime.AddCleanup(h, func(fs *files) { _ = fs.drop(f) }, &h.s.pool.files)
	if mode&openTruncate != 0 {
		return h.db.Clear(nil)
	}
	return nil
}

// closeFile closes a database of the script's own.
func (h *handle) closeFile() error {
	switch {
	case h.served:
		return errServed
	case h.db == nil:
		return errNotOpen
	}
	err := h.awaitUpdates()
	if h.tx != nil {
		_ = h.tx.Abort() // updates without a commit are dropped
		h.tx = nil
	}
	f := h.file
	h.db, h.file = nil, nil
	return errors.Join(err, h.s.pool.files.drop(f))
}

func dbOpen(c call) int {
	h := c.handleOf(1)
	path := ":"
	if c.has(2) {
		path = c.text(2)
	}
	return c.pushBool(h.note(h.openFile(path, c.int(3, openWriter|openCreate))))
}

func dbClose(c call) int {
	h := c.handleOf(1)
	if h.busy > 0 {
		c.raise("the database is being visited by this script")
	}
	return c.pushBool(h.note(h.closeFile()))
}

// dbProcess opens a database for one call of a function.
func dbProcess(c call) int {
	c.table(1)
	f := c.l.Get(2)
	if !c.callable(f) {
		c.refuse()
	}
	h := &handle{s: c.s, message: "no error"}
	path := ":"
	if c.has(3) {
		path = c.text(3)
	}
	if !h.note(h.openFile(path, c.int(4, openWriter|openCreate))) {
		c.l.Push(c.s.newError(h.code, h.message))
		return 1
	}
	_, err := c.protect(f, 0, c.s.newDB(h))
	closed := h.db == nil || h.note(h.closeFile())
	if err != nil {
		c.again(err)
	}
	if !closed {
		c.l.Push(c.s.newError(h.code, h.message))
		return 1
	}
	return 0
}
