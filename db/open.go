package db

import (
	"errors"
	"math"
	"os"
	"slices"
	"syscall"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/memstore"
	"gotycoon/db/store"
)

// maxMemoryKey is no limit of its own: requests are smaller.
const maxMemoryKey = math.MaxInt32

// openStore opens the place where the records of d live.
func (c *Catalog) openStore(d *DB) error {
	if err := d.expr.VersionsPossible(); err != nil {
		return err
	}
	p := &d.expr.Params
	var s store.Store
	switch d.expr.Kind {
	case expr.Plugged:
		return c.openPlugged(d)
	case expr.ProtoHash, expr.Stash:
		s = memstore.NewHash(memstore.HashOptions{})
	case expr.Cache:
		s = memstore.NewCache(memstore.CacheOptions{CapCount: p.CapCnt, CapSize: p.CapSiz})
	case expr.ProtoTree, expr.Grass:
		s = memstore.NewTreeStore()
	default:
		return c.openFile(d)
	}
	d.store = newOrdered(s, p.RComp)
	return nil
}

// openFile opens a database file. Whether it was created persistent is written in it and overrides the expression.
func (c *Catalog) openFile(d *DB) error {
	p := &d.expr.Params
	f, err := filestore.Open(d.Path(), filestore.Options{
		ReadOnly:   c.opts.ReadOnly,
		TryLock:    c.opts.TryLock,
		Persistent: p.Persistent,
		Limit:      c.opts.CheckpointSize,
		LWW:        p.LWW,
		Removals:   c.opts.Removals,
		Logger:     c.opts.Logger,
	})
	if err != nil {
		return openError(err)
	}
	if f.LWW() && p.RComp != expr.Lexical {
		return errors.Join(expr.ErrNoVersions, f.Abandon())
	}
	p.Persistent = f.Meta().Persistent
	d.file, d.store = f, newOrdered(f, p.RComp)
	d.maxKey = filestore.MaxKeySize - keyPrefix(p.RComp)
	return nil
}

// openError gives an error of the file store the code and words of the original.
func openError(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &dberr.Error{Code: dberr.NoRepository, Message: "open failed (file not found)", Err: err}
	case errors.Is(err, os.ErrPermission):
		return &dberr.Error{Code: dberr.NoPermission, Message: "open failed (permission denied)", Err: err}
	case errors.Is(err, filestore.ErrInUse):
		return &dberr.Error{Code: dberr.NoRepository, Message: err.Error(), Err: err}
	case ofTheSystem(err):
		return systemError(err)
	}
	return &dberr.Error{Code: dberr.BrokenFile, Message: err.Error(), Err: err}
}

// ofTheSystem reports whether the operating system could not do something, so that nothing is said about the file.
func ofTheSystem(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM},
		func(e error) bool { return errors.Is(err, e) })
}
