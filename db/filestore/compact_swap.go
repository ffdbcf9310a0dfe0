package filestore

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	bolt "go.etcd.io/bbolt"
)

// swap puts a copy that is whole and durable in the place of the file. The caller holds runMu.
func (s *Store) swap(p *pendingSwap) error {
	if err := s.compactor.disk.step("synced"); err != nil {
		return errors.Join(err, s.discardCopy(p))
	}
	s.compactor.pending = p
	failed := s.compactor.disk.rename(p.made, p.path)
	if err := s.compactor.disk.step("renamed"); err != nil {
		return err
	}
	if err := s.settle(); err != nil {
		return errors.Join(failed, err)
	}
	if s.reading.Load() != p.copy { // it did not take place; an error of a rename that did is none
		return fmt.Errorf("rename %s: %w", p.made, failed)
	}
	return nil
}

// settle ends a swap: it finds out which of the two files has the name, and makes the name durable
// if it is the copy's. Both files hold the same records and the same description until then, so
// readers need not know. But nobody may write to either: after a power cut, what was written to
// the one file would be missing in the other. So everybody who is about to write calls settle
// first. The caller holds runMu.
func (s *Store) settle() error {
	p := s.compactor.pending
	if p == nil {
		return nil
	}
	named, err := os.Stat(p.path)
	switch {
	case err != nil:
		return fmt.Errorf("%s was compacted, and cannot be found: %w; updates stay in memory and log", p.path, err)
	case os.SameFile(named, s.reading.Load().info):
		s.compactor.pending = nil
		return s.discardCopy(p)
	case !os.SameFile(named, p.copy.info):
		return fmt.Errorf("%s was compacted, and somebody has put another file in its place: move the file away, and restart the server; "+
			"updates stay in memory and log", p.path)
	}
	if err := s.compactor.disk.syncDir(filepath.Dir(p.path)); err != nil {
		return fmt.Errorf("%s was compacted, but its directory cannot be synced: %w; updates stay in memory and log", p.path, err)
	}
	s.compactor.pending = nil
	s.take(p.copy)
	return nil
}

func (s *Store) discardCopy(p *pendingSwap) error {
	if err := errors.Join(removeIfThere(p.made), p.copy.file.Close()); err != nil {
		return fmt.Errorf("remove %s: %w", p.made, err)
	}
	return nil
}

// take makes another file with the same records the file of the store. The replaced file is closed
// when its last reader has gone. The caller holds runMu.
func (s *Store) take(next *opened) {
	next.file.NoSync, next.file.NoGrowSync, next.file.AllocSize = false, false, leastGrow
	s.file, s.runs, s.removals.file = next.file, next.runs, next.file
	old, older := s.reading.Swap(next), s.older
	old.release()
	s.older = nil
	next.reflect(s.path, s.opts.Memory, s.opts.Logger)
	s.compactor.retired.Go(func() {
		<-old.unused
		if older != nil {
			<-older.unused
		}
		if err := old.file.Close(); err != nil {
			s.opts.Logger.Error("close the file that was compacted: "+err.Error(), slog.String("path", s.path))
		}
	})
}

// closeOthers closes the files besides the current one. Everything else has ended.
func (s *Store) closeOthers() error {
	s.compactor.retired.Wait()
	p := s.compactor.pending
	if p == nil {
		return nil
	}
	s.compactor.pending = nil
	return p.copy.file.Close() // it may have the name, so it is not removed
}

// opened returns a copy as readers need it. The runs are those of the file: what was found out
// about them holds for the copy too. The caller holds runMu.
func (s *Store) opened(file *bolt.DB, f *os.File) (*opened, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	runs := new(runTable)
	if l := s.runs.newest(); l != nil {
		runs.lists.Store(&[]*runList{{runs: l.runs, mergeRun: l.mergeRun, mergedTo: l.mergedTo}})
	} else if err := runs.load(file); err != nil {
		return nil, err
	}
	return newOpened(file, runs, info, &s.asked), nil
}

// makeCopy makes the file of a copy and locks it, before anybody could know it by the name of the
// database. bbolt syncs nothing of it: a copy that is not whole is worth nothing. like is the file
// whose owner and mode the copy gets.
func makeCopy(path string, like os.FileInfo) (*bolt.DB, *os.File, error) {
	var f *os.File
	o := boltOptions()
	o.Timeout, o.NoSync, o.NoGrowSync = noWait, true, true
	o.OpenFile = func(name string, flag int, perm os.FileMode) (file *os.File, err error) {
		f, err = os.OpenFile(name, flag|os.O_EXCL, perm)
		if err != nil {
			return nil, err
		}
		return f, sameOwner(f, like)
	}
	db, err := bolt.Open(path, like.Mode().Perm(), &o)
	if err != nil {
		if f != nil {
			err = errors.Join(err, removeIfThere(path))
		}
		return nil, nil, fmt.Errorf("make %s: %w", path, err)
	}
	return db, f, nil
}

// sameOwner gives a file the mode and the owner of another one. A server that may not give files
// away keeps its own as the owner.
func sameOwner(f *os.File, like os.FileInfo) error {
	if stat, ok := like.Sys().(*syscall.Stat_t); ok {
		if err := f.Chown(int(stat.Uid), int(stat.Gid)); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	return f.Chmod(like.Mode().Perm())
}
