package filestore

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"gotycoon/internal/procinfo"
)

// Open opens the file at path, or creates it. Open does not write to a file that is already there:
// Rebase or Amend does so first. The caller attaches the log and replays it from Meta().Stamp on,
// with Apply.
func Open(path string, o Options) (*Store, error) {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.Removals <= 0 {
		o.Removals = DefaultRemovals
	}
	if o.Memory <= 0 {
		o.Memory = procinfo.MemoryLimit()
	}
	if o.Background == nil {
		o.Background = func(int) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	_, err := os.Stat(path)
	made := errors.Is(err, os.ErrNotExist)
	err = identify(path)
	if errors.Is(err, os.ErrNotExist) && !o.ReadOnly {
		err = create(path, Meta{Format: formatVersion, ID: NewID(), Clean: true, Persistent: o.Persistent, Summed: true, LWW: o.LWW, Packed: true})
	}
	if err != nil {
		return nil, err
	}
	file, info, err := openBolt(path, o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	s := &Store{path: path, opts: o, file: file, runs: new(runTable), made: made}
	s.reading.Store(newOpened(file, s.runs, info, &s.asked))
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), file.Close())
	}
	s.reading.Load().reflect(path, o.Memory, o.Logger)
	if !o.ReadOnly {
		s.cp.start(s)
	}
	return s, nil
}

// Absent returns a store for a file that does not exist and is not made. The store has the Meta
// that a new file would have, and can only be abandoned.
func Absent(path string) *Store {
	s := &Store{path: path}
	s.init(Meta{Format: formatVersion, ID: NewID(), Clean: true})
	return s
}

// load reads the file's description and makes the first view.
func (s *Store) load() error {
	m, err := metaOf(s.file)
	if err != nil {
		return err
	}
	if m.Copied() { // otherwise a server would replay, unasked, what the log has after the copy
		m.LogID = ID{}
	}
	if s.opts.LWW && !m.LWW && !s.opts.ReadOnly {
		m.LWW, m.Base = true, Oldest // the file says so when it is first written
	}
	s.init(m)
	s.removals.write = s.update
	if err := s.runs.load(s.file); err != nil {
		return err
	}
	s.tellBrake()
	return nil
}

// Reset replaces the database at path, which must be one of ours and open nowhere else, by an empty
// one. The new database has another identity, so that no log has anything to add to it. A crash
// leaves either the old file or the new one.
func Reset(path string, o Options) error {
	old, err := Open(path, o)
	if err != nil {
		return err
	}
	was := old.Meta()
	was.Outlive()
	err = create(path, Meta{Format: formatVersion, ID: NewID(), Clean: true, Persistent: o.Persistent, Summed: true, LWW: was.LWW, Newest: was.Newest, Packed: true})
	return errors.Join(err, old.Abandon())
}

// Finish makes everything applied durable and marks the file as cleanly closed, but keeps the file
// open and locked: no other process can open it yet. Nothing may be applied afterwards.
func (s *Store) Finish() error {
	s.compactor.close()
	s.cp.stop()
	if s.opts.ReadOnly || s.finished {
		return nil
	}
	err := s.checkpoint(true)
	s.finished = err == nil
	return err
}

// Close is Finish followed by closing the file.
func (s *Store) Close() error { return errors.Join(s.Finish(), s.closeFile()) }

// Abandon closes the file as it is. What is only in memory is in the log.
func (s *Store) Abandon() error {
	s.compactor.close()
	s.cp.stop()
	return s.closeFile()
}

// Discard is Abandon for a store that nobody has used. If Open created the file, Discard removes it
// while it is still locked, so that another process that waits for the lock begins with a file of
// its own.
func (s *Store) Discard() error {
	var err error
	if s.made {
		err = os.Remove(s.path)
	}
	return errors.Join(err, s.Abandon())
}

// closeFile leaves an empty view, so that a reader that comes too late gets the error of the closed
// file.
func (s *Store) closeFile() error {
	old := s.view.Swap(newView(newOverlay(s.reserve, s.Meta().Stamp, s.lww)))
	old.release()
	s.reserve.Close()
	if s.file == nil { // it is Absent
		return nil
	}
	err := errors.Join(s.file.Close(), s.closeOthers())
	s.reading.Load().dropMirror()
	return err
}
