package filestore

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	bolt "go.etcd.io/bbolt"

	"gotycoon/internal/rescue"
)

// # The checkpoint
//
// A checkpoint moves the updates of an overlay into the file, sorted by key, so that each page of
// the file is changed once for many updates. Clients go on updating meanwhile:
//
//	freeze    the active overlay becomes the frozen one, an empty one is active: microseconds
//	sync      the log is synced up to the newest stamp in the frozen overlay
//	write     transactions of at most 20,000 entries; the last one moves Meta.Stamp
//	release   the next view has no frozen overlay; the overlay's memory is given back
//
// A crash leaves the file at a stamp S, and the log has every update after S. If the crash came
// between two transactions, part of the frozen overlay is in the file already. The replay applies
// the updates of that part again, in the log's order, and ends with the same records. Until the
// replay is done the file is the state of no single moment. Meta.Merging says so, and such a file
// is refused without its log.
//
// Rejected: one transaction for the whole overlay. The file would always be the state of a moment,
// but bbolt keeps every page that a transaction touches in memory: filling ten million records took
// 7.4 GB instead of 2.2 GB. Rejected too: writing each update to the file at once, with one fsync
// for each; the log does that job with one sequential write for everybody.
//
// # The life of an overlay
//
//	      freezeOverlay        flush                  last transaction         last view released
//	live ──────────────► frozen ────► being written ─────────────────► written ─────────────► gone
//	                       ▲                │
//	                       └────────────────┘ the log or the file could not be written
//
//	state           in the view    who changes it          where a crash leaves its updates
//	live            active         Apply and SetPosition   in the log
//	frozen          frozen         nobody                  in the log; after a failure some in the file
//	being written   frozen         nobody                  in the log, and some in the file
//	written         only old ones  nobody                  in the file
//	gone            none           nobody, it is empty     in the file
//
// One overlay is live at any time, and at most one is frozen or being written, because a view has
// room for one: whoever freezes has runMu, and writes a leftover first. An overlay whose checkpoint
// failed stays frozen and readable, and the next checkpoint writes it again from its first key;
// meanwhile the live overlay grows until the throttle refuses updates with the error. A clear does
// not end the life of an overlay: it empties the live one, which from then on hides the frozen one
// and the file. The overlay of a read-only file stays live until the file is closed. The overlay
// of any other file is empty when the file is closed, except after Abandon or a failed checkpoint,
// which leave its updates to the log. (The removal of an expired or evicted record is in no log: a
// crash may bring such a record back, and it is found and removed again.)
//
// Who does what, and under which lock:
//
//	a writer           Throttle waits for room: throttle.mu. Apply and SetPosition change the live
//	                   overlay: applyMu. The callers of Apply come one at a time: they hold the
//	                   commit lock of package db, or are the replay before anybody else is there.
//	whoever has runMu  freezes (applyMu), syncs the log, writes (runMu alone), replaces the view
//	                   (applyMu), prunes removals. It is the goroutine of the checkpointer, or a
//	                   caller of Checkpoint, Hold, Rebase, Amend, Freeze, Finish or Close.
//	a reader           takes a view and releases it, both without a lock of the store. Whoever
//	                   releases the last view of an overlay gives its memory back: often a reader.
//	a counting reader  also looks keys up: overlay.countMu. Of an overlay in its view, frozen or
//	                   not, it changes only the fields for the count: overlay.mu.
//
// Locks, in the order in which they may be taken:
//
//	runMu → locks of the log (SyncTo), of bbolt's writer, of the function given to Attach
//	runMu → commit lock of db (Freeze) → applyMu → overlay.mu → locks of the tree
//	applyMu → description.mu; applyMu → throttle.mu
//	overlay.countMu → overlay.mu; overlay.countMu → locks of the frozen overlay's tree
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
	s.view.Load().active.stamp = m.Stamp
	s.followed = followed{m.Position, m.PositionAt}
	s.applyMu.Unlock()
	return s.checkpointLocked(false)
}

// Amend changes the file's description at once and leaves the updates in memory where they are, so
// Meta.Stamp stays.
func (s *Store) Amend(change func(*Meta)) error {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	m := s.Meta()
	change(&m)
	if err := s.file.Update(func(tx *bolt.Tx) error { return writeMeta(tx, m) }); err != nil {
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
	for {
		select {
		case <-c.quit:
			return
		case <-c.wake:
		}
		if err := s.checkpoint(false); err != nil {
			s.opts.Logger.Error("checkpoint: "+err.Error(), slog.String("path", s.path))
			c.retryLater()
		}
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

// checkpointLocked writes everything applied so far: first an overlay that a failed checkpoint
// left, then the active one. The caller holds runMu.
func (s *Store) checkpointLocked(clean bool) error {
	if err := s.writeLeftover(); err != nil {
		return err
	}
	if err := s.writeFrozen(s.freezeOverlay(), clean); err != nil {
		return err
	}
	return s.removals.prune(pruneEntries)
}

// writeLeftover writes the overlay that a failed checkpoint left, if there is one. The caller holds
// runMu.
func (s *Store) writeLeftover() error {
	if left := s.leftover(); left != nil {
		return s.writeFrozen(left, false)
	}
	return nil
}

// writeFrozen writes a frozen overlay into the file and wakes writers that wait. The caller holds
// runMu.
func (s *Store) writeFrozen(o *overlay, clean bool) error {
	begun := time.Now()
	err := s.flush(o, clean)
	s.cp.times.Observe(int64(time.Since(begun)))
	s.throttle.checkpointed(err)
	if err == nil {
		s.tellDone()
	}
	return err
}

// tellDone tells the database's owner of a checkpoint. The caller holds runMu.
func (s *Store) tellDone() {
	if s.cp.done != nil {
		s.cp.done(s.Meta())
	}
}

// freezeOverlay makes an empty overlay the active one and returns the overlay that was active
// before; it is frozen now and does not change any more. A view has room for one frozen overlay, so
// the caller has written a leftover first. The stamp of the frozen overlay is that of its last
// update, because Apply and the freeze both hold applyMu.
func (s *Store) freezeOverlay() *overlay {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	old := s.view.Load()
	o := old.active
	o.checkpoint, o.clearedBy = s.Meta().Checkpoints+1, s.cleared
	s.view.Store(newView(newOverlay(o.stamp, s.lww), o))
	old.release()
	s.throttle.emptied()
	return o
}

// flush syncs the log, writes a frozen overlay into the file, and takes the overlay out of the
// view.
func (s *Store) flush(o *overlay, clean bool) error {
	if s.cp.log != nil {
		if err := s.cp.log.SyncTo(max(o.stamp, o.follow.at)); err != nil {
			return err
		}
	}
	if err := s.writeOverlay(o, clean); err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	old := s.view.Load()
	s.view.Store(newView(old.active, nil))
	old.release()
	return nil
}

// AskCheckpoint asks for a checkpoint without waiting for it.
func (s *Store) AskCheckpoint() { s.cp.wakeUp() }
