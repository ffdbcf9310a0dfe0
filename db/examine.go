package db

import (
	"errors"
	"os"

	"gotycoon/db/filestore"
	"gotycoon/ulog"
)

// Examine returns why a server with these options would refuse to open a database file because of acknowledged updates that only the file's own update log
// has, see PassedOver. It changes nothing. It returns nil for a file that is not there yet, and for one that a server has open: that server
// has taken the updates. What is wrong with a private log beside the file shows at the start only.
func Examine(path string, o Options) error {
	o.setDefaults()
	f, err := filestore.Open(path, filestore.Options{ReadOnly: true, TryLock: true, Logger: o.Logger})
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, filestore.ErrInUse):
		return nil
	case err != nil:
		return openError(err)
	}
	c := &Catalog{opts: o}
	expr, err := ParseExpr(path)
	if err == nil {
		err = c.wouldRefuse(&DB{expr: expr, file: f, readOnly: o.ReadOnly, logger: o.Logger})
	}
	return errors.Join(err, f.Abandon())
}

// wouldRefuse is inspect without an open log.
func (c *Catalog) wouldRefuse(d *DB) error {
	if dir := c.opts.LogDir; dir != "" {
		if id, err := ulog.Identity(c.opts.FS, dir); err == nil && filestore.ID(id) == d.file.Meta().LogID {
			return nil
		}
	}
	if d.readOnly {
		return nil // it brings nothing into the file, and leaves nothing out
	}
	return c.inspect(d)
}
