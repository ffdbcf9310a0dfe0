package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"gotycoon/db/dberr"
	"gotycoon/internal/vfs"
)

// copies makes the files of databases in an engine that a command of synchronize works on. Such a
// file lives as long as the command.
//
// All have their place in one directory, which keeps its name over restarts: scripts write their
// backups beside the file that they are given ("$1.$2"). The process that uses the directory has it
// locked, so a start can tell the files that a killed server has left from those of another server
// that runs. No other user can write there, and a directory with a script's files is not removed.
type copies struct {
	Copies
	fs     vfs.FS
	logger *slog.Logger
	turns  sync.Map   // a *sync.Mutex for each name of a file
	making sync.Mutex // one file is made at a time: each takes a connection of the engine's few

	mu     sync.Mutex
	lock   vfs.File // in the directory; nil: not used yet
	ctx    context.Context
	cancel context.CancelFunc
}

// copiesLock is the file that is locked by who uses the directory.
const copiesLock = ".lock"

var errCopyEnded error = &dberr.Error{Code: dberr.SystemError, Message: "the server stops: the copy of the database was given up"}

func newCopies(o *Options) *copies {
	c := &copies{Copies: o.Copies, fs: o.FS, logger: o.Logger}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// copyName is the name of a database's file: the database's name, which may be that of a file.
func copyName(name string) string {
	switch filepath.Ext(name) {
	case ".kct", ".kch", ".kcd", ".kcf":
		return name
	}
	return name + ".kct"
}

// with has a file made, calls use with its path, and removes the file, whatever happens. There is
// one file of a name at a time.
func (c *copies) with(name string, build func(ctx context.Context, path string) error, use func(path string) error) (err error) {
	c.mu.Lock()
	ctx := c.ctx
	c.mu.Unlock()
	name = copyName(name)
	turn, _ := c.turns.LoadOrStore(name, new(sync.Mutex))
	turn.(*sync.Mutex).Lock()
	defer turn.(*sync.Mutex).Unlock()
	if err := c.open(); err != nil {
		return err
	}
	path := filepath.Join(c.Dir, name)
	if err := c.remove(path); err != nil { // a former removal may have failed
		return err
	}
	c.making.Lock()
	if err = errCopyEnded; ctx.Err() == nil {
		err = build(ctx, path)
	}
	c.making.Unlock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.remove(path)) }()
	return use(path)
}

func (c *copies) remove(path string) error {
	if err := c.fs.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// open makes and locks the directory.
func (c *copies) open() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock != nil {
		return nil
	}
	if err := c.fs.MkdirAll(filepath.Dir(c.Dir), 0o755); err != nil {
		return err
	}
	if err := c.fs.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	return c.lockLocked()
}

// lockLocked locks the directory, which must be a directory of this user: in a place where all may
// write, somebody else could have made it.
func (c *copies) lockLocked() error {
	info, err := os.Lstat(c.Dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is no directory of this user: remove it, or name another place for it with -engine-copies", c.Dir)
	}
	const others = 0o022 // of its group too
	if info.Mode().Perm()&others != 0 {
		return fmt.Errorf("other users can write to %s, where copies of databases are made: take that right away, with 'chmod 700'", c.Dir)
	}
	f, err := c.fs.OpenFile(filepath.Join(c.Dir, copiesLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := c.fs.Lock(f, 0); err != nil {
		return errors.Join(fmt.Errorf("%s is in use by another server: name another place with -engine-copies: %w", c.Dir, err), f.Close())
	}
	c.lock = f
	return nil
}

// clear removes what a killed server has left of the files of databases.
func (c *copies) clear(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.fs.Stat(c.Dir); err != nil || c.lockLocked() != nil {
		return // nobody has used it, or another server does
	}
	defer c.closeLocked()
	left, err := c.fs.ReadDir(c.Dir)
	for _, name := range names {
		name = copyName(name)
		for _, file := range left {
			if file != name && !strings.HasPrefix(file, name+".rebuild-") {
				continue
			}
			path := filepath.Join(c.Dir, file)
			c.logger.Info("removing what a command of synchronize has left: " + path)
			err = errors.Join(err, c.remove(path))
		}
	}
	if err != nil {
		c.logger.Error("removing what commands of synchronize have left: " + err.Error())
	}
}

// end has files that are being made given up. Commands that run go on.
func (c *copies) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel()
	c.ctx, c.cancel = context.WithCancel(context.Background())
}

// close gives the directory back.
func (c *copies) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel()
	if c.lock != nil {
		c.closeLocked()
	}
}

func (c *copies) closeLocked() {
	_ = c.fs.Remove(filepath.Join(c.Dir, copiesLock))
	_ = c.fs.Remove(c.Dir) // not while a script's files are in it
	_ = c.lock.Close()
	c.lock = nil
}
