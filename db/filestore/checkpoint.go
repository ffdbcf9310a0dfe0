package filestore

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	bolt "go.etcd.io/bbolt"

	"gotycoon/internal/procinfo"
	"gotycoon/internal/rescue"
)

// # The checkpoint
//
// Updates go from memory into the file in three steps:
//
//	freeze    the active overlay becomes a frozen one, an empty one is active: microseconds
//	flush     the log is synced up to the newest stamp in the oldest frozen overlay, the overlay is
//	          written as a run, and the transaction that ends the run moves Meta.Stamp
//	merge     the entries of many runs go into the bottom, see merge.go
//
// Clients go on updating meanwhile. Apply freezes an overlay when it has Options.Limit. Several
// frozen overlays may wait; brake.go says how writers are slowed down when they do.
//
// A crash leaves the file at a stamp S, with the records of the moment S, and the log has every
// update after S. A crash within a flush leaves an unfinished run, which readers ignore and the
// next flush drops. A crash within a merge leaves a merge that the next process goes on with.
//
// Rejected: writing an overlay into the bottom at once, as earlier versions did. See the arithmetic
// in merge.go; and the file was the state of no single moment until the last transaction. Files of
// these versions may still say so with Meta.Merging, and are refused without their log. Rejected
// too: writing each update to the file at once, with one fsync for each; the log does that job with
// one sequential write for everybody.
//
// # The life of an overlay
//
//	      freezeOverlay        flush                  last transaction         last view released
//	live ──────────────► frozen ────► being written ─────────────────► written ─────────────► gone
//	                       ▲                │
//	                       └────────────────┘ the log or the file could not be written
//
//	state           in the view    who changes it          where a crash leaves its updates
//	live            first          Apply and SetPosition   in the log
//	frozen          behind it      nobody                  in the log
//	being written   the last one   nobody                  in the log
//	written         only old ones  nobody                  in the file
//	gone            none           nobody, it is empty     in the file
//
// One overlay is live at any time; the frozen ones are flushed in their order, by whoever has
// runMu. An overlay whose flush failed stays frozen and readable, and the next flush writes it
// again from its first key; meanwhile updates come in until the brake refuses them with the error.
// A clear does not end the life of an overlay: it empties the live one, which from then on hides
// the frozen ones and the file. The overlay of a read-only file stays live until the file is
// closed. The overlay of any other file is empty when the file is closed, except after Abandon or a
// failed checkpoint, which leave its updates to the log. (The removal of an expired or evicted
// record is in no log: a crash may bring such a record back, and it is found and removed again.)
//
// Who does what, and under which lock:
//
//	a writer           Throttle waits: brake.mu. Apply and SetPosition change the live overlay, and
//	                   Apply freezes it: applyMu. The callers of Apply come one at a time: they hold
//	                   the commit lock of package db, or are the replay before anybody else is there.
//	whoever has runMu  syncs the log, flushes and merges (runMu alone), freezes and replaces the view
//	                   (applyMu), prunes removals. It is the goroutine of the checkpointer, or a
//	                   caller of Checkpoint, Hold, Rebase, Amend, Freeze, Finish or Close.
//	a reader           takes a view and releases it, both without a lock of the store. Whoever
//	                   releases the last view of an overlay gives its memory back: often a reader.
//	a counting reader  also looks keys up: overlay.countMu, fileRun.counting. Of an overlay in its
//	                   view, frozen or not, it changes only the fields for the count: overlay.mu.
//
// Locks, in the order in which they may be taken:
//
//	runMu → locks of the log (SyncTo), of bbolt's writer, of the function given to Attach
//	runMu → commit lock of db (Freeze) → applyMu → overlay.mu → locks of the tree
//	a compaction takes runMu for its beginning and for the swap; compactor.mu is last
//	applyMu → description.mu; applyMu → brake.mu; bbolt's writer → runTable.mu, fileRun.mu
//	overlay.countMu → overlay.mu; overlay.countMu → locks of a frozen overlay's tree
//	fileRun.counting → fileRun.mu
//
// Under applyMu, overlay.mu, and the locks of the live overlay's tree only memory is touched. The
// tree of a frozen overlay is locked for reading while bbolt is read and written, which holds up
// nobody, because the tree is not changed any more. Nobody may ask for runMu who has one of the
// locks behind it.

const retryAfter = time.Second // between checkpoints while they fail

// Attach makes log the log that is synced before each checkpoint, and has done told of each
// checkpoint.
func (s *Store) Attach(log Log, done func(Meta)) {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	s.cp.log, s.cp.done = log, done
}

// Rebase moves everything applied so far into the file, lets change edit the file's description,
// above all its place in a log, and writes the description. Nothing may be applied meanwhile.
func (s *Store) Rebase(change func(*Meta)) error {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	if err := s.checkpointLocked(false); err != nil {
		return err
	}
	s.desc.change(change)
	m := s.Meta()
	s.applyMu.Lock()
	s.view.Load().active().stamp = m.Stamp
	s.followed = followed{m.Position, m.PositionAt}
	s.applyMu.Unlock()
	return s.checkpointLocked(false)
}

// Amend changes the file's description at once and leaves the updates in memory where they are, so
// Meta.Stamp stays.
func (s *Store) Amend(change func(*Meta)) error {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	if err := s.settle(); err != nil {
		return err
	}
	m := s.Meta()
	change(&m)
	if err := s.update(func(tx *bolt.Tx) error { return writeMeta(tx, m) }); err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	s.desc.change(func(now *Meta) { *now = m })
	s.tellDone()
	return nil
}

// start begins the goroutine that stop ends.
func (c *checkpointer) start(s *Store) {
	c.stopped = make(chan struct{})
	go func() { _ = rescue.Do(s.opts.Logger, "a checkpoint of "+s.path, func() { c.run(s) }) }()
}

// stop ends the goroutine and waits for it.
func (c *checkpointer) stop() {
	if c.stopped == nil {
		return
	}
	close(c.quit)
	<-c.stopped
	c.stopped = nil
}

func (c *checkpointer) run(s *Store) {
	defer close(c.stopped)
	procinfo.TakeLongTurns() // clients come first
	for {
		select {
		case <-c.quit:
			return
		case <-c.wake:
		}
		if err := c.work(s); err != nil {
			s.opts.Logger.Error("checkpoint: "+err.Error(), slog.String("path", s.path))
			c.retryLater()
		}
	}
}

// work does what there is to do.
func (c *checkpointer) work(s *Store) error {
	s.opts.Background(1)
	defer s.opts.Background(-1)
	for more := true; more && !c.quitting(); {
		var err error
		if more, err = s.step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *checkpointer) quitting() bool {
	select {
	case <-c.quit:
		return true
	default:
		return false
	}
}

// retryLater asks for another checkpoint after a pause, unless the store is closed meanwhile.
func (c *checkpointer) retryLater() {
	pause := time.NewTimer(retryAfter)
	defer pause.Stop()
	select {
	case <-c.quit:
	case <-pause.C:
		c.wakeUp()
	}
}

// Checkpoint moves everything applied so far into the file.
func (s *Store) Checkpoint() error { return s.checkpoint(false) }

// Merge flushes everything applied so far, and merges all runs that are in the file then.
func (s *Store) Merge() error {
	if err := s.Checkpoint(); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = s.mergeOn(true); err != nil {
			return err
		}
	}
	return nil
}

// Hold moves everything applied so far into the file and leaves the file alone while f runs;
// updates go on in memory. During f the file has Meta.Held, so a copy that f makes has it too.
// After f the file gets a greater epoch without Held. So a start can tell the file from its copies.
func (s *Store) Hold(f func() error) error {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	s.desc.change(func(m *Meta) { m.Held = true })
	err := s.checkpointLocked(false)
	if err == nil {
		err = f()
	}
	s.desc.change(func(m *Meta) { m.Epoch, m.Held = m.Epoch+1, false })
	return errors.Join(err, s.checkpointLocked(false))
}

func (s *Store) checkpoint(clean bool) error {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	return s.checkpointLocked(clean)
}

// checkpointLocked flushes everything applied so far. The caller holds runMu.
func (s *Store) checkpointLocked(clean bool) error {
	s.opts.Background(1)
	defer s.opts.Background(-1)
	o := s.freeze()
	if err := s.flushTo(o, clean, newProgress(s.path, s.Unwritten, s.opts.Logger)); err != nil {
		return err
	}
	s.cp.wakeUp() // there may be something to merge
	return nil
}

// flushTo flushes the frozen overlays up to o, the oldest first. clean becomes Meta.Clean with the
// last one. p is told how far it is, nil where nobody waits. The caller holds runMu.
func (s *Store) flushTo(o *overlay, clean bool, p *progress) error {
	for {
		next := s.view.Load().oldest() // only the holder of runMu takes overlays out of a view
		if err := s.flush(next, clean && next == o, p); err != nil {
			return err
		}
		if next == o {
			return nil
		}
	}
}

// step does what is next: a flush, or a piece of a merge. more reports whether there is more to do.
func (s *Store) step() (more bool, err error) {
	if more, err := s.flushSome(); more || err != nil {
		return more, err
	}
	return s.mergeOn(false)
}

// flushSome flushes what waits for it; more reports whether anything did.
func (s *Store) flushSome() (more bool, err error) {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	asked := s.cp.asked.Swap(false)
	o := s.view.Load().oldest()
	if asked || o == nil && s.brake.active.Load() >= s.opts.Limit {
		o = s.freeze()
	}
	if o == nil {
		return false, nil
	}
	return true, s.flushTo(o, false, nil)
}

func (s *Store) freeze() *overlay {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	return s.freezeOverlay()
}

// flush syncs the log, writes a frozen overlay into the file, takes it out of the view, and wakes
// writers that wait. The caller holds runMu.
func (s *Store) flush(o *overlay, clean bool, p *progress) error {
	begun := time.Now()
	err := s.settle()
	if err == nil {
		err = s.syncLog(o)
	}
	if err == nil {
		err = s.writeOverlay(o, clean, p)
	}
	took := time.Since(begun)
	s.cp.times.Observe(int64(took))
	if err == nil {
		s.takeOut()
		s.brake.worked(&s.brake.flush, o.liveBytes, took)
	}
	s.brake.flushed(err)
	if err == nil {
		s.tellDone()
	}
	return err
}

// syncLog makes the log durable up to the newest update of an overlay.
func (s *Store) syncLog(o *overlay) error {
	if s.cp.log == nil {
		return nil
	}
	return s.cp.log.SyncTo(max(o.stamp, o.follow.at))
}

// takeOut takes the oldest overlay, which is in the file now, out of the view.
func (s *Store) takeOut() {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	old := s.view.Load()
	s.view.Store(newView(old.overlays[:len(old.overlays)-1]...))
	old.release()
	s.countFrozen()
	s.tellBrake()
}

// tellDone tells the database's owner of a checkpoint. The caller holds runMu.
func (s *Store) tellDone() {
	s.reading.Load().reflect(s.path, s.opts.Memory, s.opts.Logger)
	if s.cp.done != nil {
		s.cp.done(s.Meta())
	}
}

// AskCheckpoint asks for a checkpoint without waiting for it.
func (s *Store) AskCheckpoint() {
	s.cp.asked.Store(true)
	s.cp.wakeUp()
}
