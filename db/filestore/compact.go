package filestore

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"gotycoon/internal/procinfo"
	"gotycoon/internal/rescue"
)

// # Compaction
//
// A bbolt file never shrinks: the pages of removed records are used again, and stay in the file. A
// compaction copies the file beside itself, without the unused pages, and puts the copy in its
// place, while clients read and write:
//
//	merge    all runs go into the tree, so that the copy begins with few
//	pause    merges and prunes wait from now on; flushes go on, and only add runs
//	trees    every bucket is copied in its order, in pieces with rests in between
//	runs     the runs that have come up meanwhile are copied, and those that came up during that
//	swap     under runMu: the last runs and the description are copied; the copy is synced, renamed
//	         over the file, and its directory synced; readers get the copy, merges go on
//
// The invariant: at every instant, the file that a start would find under the name has all records
// up to its Meta.Stamp, and the log has everything after that stamp. The steps keep it so:
//
//   - Until the rename the name is the file's. The copy is worth nothing, and no start looks at it.
//   - From before the copy of the description until the directory is synced, nobody writes to the
//     file: runMu is held. So at the rename both files have the same records and the same stamp,
//     and both are durable; whichever of the two a power cut leaves under the name is right.
//   - The log is cut by what a flush has written. The first flush after the swap begins when the
//     name of the copy is durable. If it is not known whether the rename took place, or the
//     directory cannot be synced, nobody writes to either file until that is settled, see settle;
//     updates stay in memory and in the log meanwhile, as they do when the disk is full.
//
// The copy is locked from the instant when it is made. So whoever opens the name finds a file that
// is locked, and a process that waits for the lock of the replaced file notices that the name is no
// longer that file's (openCurrent).
//
// A flush that empties the file (a clear) makes the copy void. It is noticed by compactor.clears,
// and the copy begins anew, with little to copy. Hold, Rebase and Amend change the description
// only, which is copied last. A Frozen and CopyTo read the file that was current when they began;
// the disk has its space back when they have ended. Hold keeps the swap out by runMu.
//
// While merges are paused, runs pile up, and brake.go slows writers down when there are many. So a
// compaction gives up when the debt is mostDebt: clients go before it.
//
// A process that ends within a compaction leaves the copy, unfinished, under the name of it. The
// next one does not go on with it: the copy was never synced as a whole, and merges and clears may
// come in between, so each bucket would have to be compared again. It begins anew instead, by
// itself, see ResumeCompaction.
//
// Rejected: moving pages of the file down and cutting its end off. bbolt has no way from a page to
// the page that refers to it, and readers would have to wait. Rejected too: copying the pages as
// they are (CopyTo); that would copy the unused pages as well.

const (
	copySuffix  = ".compact"  // of the copy's name
	againSuffix = ".compact2" // of the copy of a compaction that was resumed

	mostDebt     = 1.25     // a compaction gives up when the runs have so much, see runList.debt
	mostClears   = 8        // or when the file was cleared so often
	catchUps     = 8        // rounds without runMu for runs that have come up
	memoryShare  = 4        // a copy stays in memory if it takes less than this part
	leastCompact = 64 << 10 // bytes that a file of no records needs
)

// Compact begins to compact the file in the background, or joins the compaction that is under way.
func (s *Store) Compact(o CompactOptions) (*Compaction, error) {
	return s.beginCompaction(o, copySuffix)
}

// ResumeCompaction begins the compaction again that the latest process did not finish; the result
// is nil if there is none. A compaction that is begun again for the second time may be the reason
// why processes end, so there is no third time.
func (s *Store) ResumeCompaction(o CompactOptions) (*Compaction, error) {
	target, err := filepath.EvalSymlinks(s.path)
	if err != nil || s.opts.ReadOnly || s.CompactionStats().Running {
		return nil, err
	}
	if err := removeIfThere(target + againSuffix); err != nil {
		return nil, err
	}
	if _, err := os.Stat(target + copySuffix); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	return s.beginCompaction(o, againSuffix)
}

// CompactionStats returns the figures of compactions.
func (s *Store) CompactionStats() CompactionStats { return s.compactor.stats() }

// RunningCompaction returns the compaction that is under way, or nil.
func (s *Store) RunningCompaction() *Compaction { return s.compactor.running() }

// NeededSize returns the size of the file, and about which size it would have after a compaction.
// The latest compaction has taught how far the guess is off.
func (s *Store) NeededSize() (size, needed int64) {
	return s.FileSize(), int64(float64(s.guessSize()) * s.compactor.guessOff())
}

// guessSize guesses from the description which size the file would have after a compaction.
func (s *Store) guessSize() (needed int64) {
	m := s.Meta()
	const each, full, blocks, filterBits = 24, 9, 16, 10 // bytes around a record; tenths of a page; a part of a run; of an entry
	needed = m.Bytes + each*m.Count
	if m.LWW {
		needed += 2 * (each + versionSize) * (m.Count + m.Removals)
	}
	needed = needed * 10 / full
	if l := s.reading.Load().runs.newest(); l != nil {
		for _, r := range l.runs {
			needed += r.Bytes + r.Bytes/blocks + r.Entries*filterBits/8
		}
	}
	return needed + leastCompact
}

func (s *Store) beginCompaction(o CompactOptions, suffix string) (*Compaction, error) {
	if s.opts.ReadOnly {
		return nil, fmt.Errorf("%s is open for reading only", s.path)
	}
	c := &Compaction{opts: o, began: time.Now(), done: make(chan struct{}), quit: make(chan struct{})}
	now, mine, err := s.compactor.begin(c)
	if !mine {
		return now, err
	}
	go func() {
		procinfo.TakeLongTurns() // clients come first
		err := errors.New("a fault of the server, its log has more")
		defer func() { s.compactor.end(c, err) }()
		_ = rescue.Do(s.opts.Logger, "the compaction of "+s.path, func() { err = s.compact(c, suffix) })
	}()
	return c, nil
}

// compact is a whole compaction, and what is left of it.
func (s *Store) compact(c *Compaction, suffix string) error {
	debug.SetPanicOnFault(true) // a page that the disk cannot read is an error, see some
	c.Before = s.FileSize()
	target, err := filepath.EvalSymlinks(s.path)
	if err == nil {
		err = s.compactTo(c, target, suffix)
	}
	if err != nil {
		err = fmt.Errorf("compact %s: %w", s.path, err)
		if !errors.Is(err, ErrCompactAborted) {
			s.opts.Logger.Error(err.Error())
		} else if c.closing.Load() { // the next process begins it again
			if left := os.WriteFile(target+copySuffix, nil, 0o644); left != nil {
				err = errors.Join(err, left)
			}
		}
		return err
	}
	c.After = s.FileSize()
	s.compactor.learn(c.After, s.guessSize())
	s.opts.Logger.Info(fmt.Sprintf("compacted %s in %v: %d bytes, before: %d", s.path, time.Since(c.began).Round(time.Millisecond), c.After, c.Before),
		slog.String("path", s.path))
	return nil
}

func (s *Store) compactTo(c *Compaction, target, suffix string) error {
	for _, left := range []string{target + copySuffix, target + againSuffix} {
		if err := removeIfThere(left); err != nil {
			return err
		}
	}
	if err := s.mergeAll(c); err != nil {
		return err
	}
	if err := s.pauseMerges(target); err != nil {
		return err
	}
	defer s.goOnMerging()
	err := errVoid
	for n := 0; errors.Is(err, errVoid) && n < mostClears; n++ {
		err = s.copyAndSwap(c, target, target+suffix)
	}
	return err
}

// mergeAll merges the runs that are in the file, so that few have to be copied and merged later.
func (s *Store) mergeAll(c *Compaction) error {
	for ends := 0; ends < 2; { // the merge under way, and one of all runs
		begun := time.Now()
		more, err := s.mergeOn(true)
		if err != nil || !more {
			return err
		}
		if s.Meta().MergeRun == 0 {
			ends++
		}
		if err := c.rest(time.Since(begun)); err != nil {
			return err
		}
	}
	return nil
}

// pauseMerges makes merges and prunes wait. The error says that the name is not the file's.
func (s *Store) pauseMerges(target string) error {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	if err := s.settle(); err != nil {
		return err
	}
	if named, err := os.Stat(target); err != nil {
		return err
	} else if !os.SameFile(named, s.reading.Load().info) {
		return fmt.Errorf("somebody has put another file in the place of %s: restart the server", target)
	}
	s.compactor.paused = true
	return nil
}

func (s *Store) goOnMerging() {
	s.cp.runMu.Lock()
	s.compactor.paused = false
	s.cp.runMu.Unlock()
	s.cp.wakeUp()
}

// clearsSoFar returns how often the file was emptied. A clear is counted before its transaction is
// committed; so no flush may be under way, or the copy could begin with what the clear removes.
func (s *Store) clearsSoFar() uint64 {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	return s.compactor.clears.Load()
}

// copyAndSwap makes the copy and puts it in the place of the file.
func (s *Store) copyAndSwap(c *Compaction, target, path string) (err error) {
	if err := s.compactor.disk.step("begin"); err != nil {
		return err
	}
	clears := s.clearsSoFar()
	current := s.reading.Load()
	to, f, err := makeCopy(path, current.info)
	if err != nil {
		return err
	}
	_, needed := s.NeededSize()
	c.copied.Store(0)
	c.total.Store(needed)
	p := &copier{
		c: c, sys: &s.compactor.disk, read: s.readFile, passages: current.passages, to: to, f: f, path: path, runs: map[string]bool{},
		piece: firstPiece, giveBack: needed > procinfo.MemoryLimit()/memoryShare,
		valid: func() error {
			switch {
			case s.compactor.clears.Load() != clears:
				return errVoid
			case s.brake.runDebt() >= mostDebt:
				return ErrCompactBehind
			}
			return c.stopped()
		},
	}
	defer func() {
		if to != nil {
			err = errors.Join(err, p.discard())
		}
	}()
	if err := p.room(needed); err != nil {
		return err
	}
	if err := p.trees(); err != nil {
		return err
	}
	for n, round := 1, 0; n > 0 && round < catchUps; round++ {
		if n, err = p.newRuns(); err != nil {
			return err
		}
	}
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	p.hurry = true
	if err := p.finish(); err != nil {
		return err
	}
	next, err := s.opened(to, f)
	if err != nil {
		return err
	}
	to = nil // the swap has it
	return s.swap(&pendingSwap{path: target, made: path, copy: next})
}
