package filestore

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/store"
	"gotycoon/internal/metrics"
	"gotycoon/internal/pieces"
	"gotycoon/internal/rescue"
)

const (
	retryAfter  = time.Second // between checkpoints while they do not succeed
	stallAt     = 2           // times the limit at which writers wait
	largeStall  = 8           // the same with large values, which seldom are the reason to wait
	replayStall = 8           // the same for a replay, which should not wait for what a crash had left to do
)

// checkpointer is the state of the background checkpoint. Its goroutine is started by Open and ended by Close.
type checkpointer struct {
	runMu sync.Mutex // held over a checkpoint, and while a command works on the file (Hold); taken before the commit lock
	log   Log        // nil: nothing to sync; guarded by runMu
	done  func(Meta) // told of each checkpoint; guarded by runMu

	wake    chan struct{} // one wish for a checkpoint
	quit    chan struct{}
	stopped chan struct{} // closed when the goroutine has ended; nil for a read-only file

	mu     sync.Mutex
	room   *sync.Cond // signalled when a checkpoint ends, well or not
	meta   Meta       // of the last checkpoint
	err    error      // why the last one did not succeed
	stalls stalls     // of writers
	exact  usage      // the latest exact count; see estimate.go

	times *metrics.Histogram // of checkpoints, in nanoseconds
}

func (c *checkpointer) init(m Meta) {
	c.meta = m
	c.exact = usage{m.Count, m.Bytes}
	c.times = metrics.NewTimes()
	c.wake = make(chan struct{}, 1)
	c.quit = make(chan struct{})
	c.room = sync.NewCond(&c.mu)
}

// wakeUp asks for a checkpoint without waiting for it.
func (c *checkpointer) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default: // one is asked for already
	}
}

// Attach makes log the one that is synced before each checkpoint, and tells done of each.
func (s *Store) Attach(log Log, done func(Meta)) {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	s.cp.log, s.cp.done = log, done
}

// Rebase moves everything applied so far into the file and changes the file's description, its place in a log
// above all. Nothing may be applied meanwhile.
func (s *Store) Rebase(change func(*Meta)) error {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	if err := s.checkpointLocked(false); err != nil {
		return err
	}
	s.changeMeta(change)
	m := s.Meta()
	s.applyMu.Lock()
	s.view.Load().active.stamp = m.Stamp
	s.followed = followed{m.Position, m.PositionAt}
	s.applyMu.Unlock()
	return s.checkpointLocked(false)
}

// Amend changes the file's description without what is in memory going to the file: the stamp stays.
func (s *Store) Amend(change func(*Meta)) error {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	m := s.Meta()
	change(&m)
	if err := s.file.Update(func(tx *bolt.Tx) error { return writeMeta(tx, m) }); err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	s.changeMeta(func(now *Meta) { *now = m })
	s.tellDone()
	return nil
}

// changeMeta changes what the next checkpoint writes.
func (s *Store) changeMeta(change func(*Meta)) {
	s.cp.mu.Lock()
	defer s.cp.mu.Unlock()
	change(&s.cp.meta)
}

// Meta returns the file's description as of the last checkpoint.
func (s *Store) Meta() Meta {
	s.cp.mu.Lock()
	defer s.cp.mu.Unlock()
	return s.cp.meta
}

// startCheckpoints starts the goroutine that Close ends.
func (s *Store) startCheckpoints() {
	s.cp.stopped = make(chan struct{})
	go func() { _ = rescue.Do(s.opts.Logger, "a checkpoint of "+s.path, s.run) }()
}

// stopCheckpoints ends the goroutine and waits for it.
func (s *Store) stopCheckpoints() {
	if s.cp.stopped == nil {
		return
	}
	close(s.cp.quit)
	<-s.cp.stopped
	s.cp.stopped = nil
}

func (s *Store) run() {
	defer close(s.cp.stopped)
	for {
		select {
		case <-s.cp.quit:
			return
		case <-s.cp.wake:
		}
		if err := s.checkpoint(false); err != nil {
			s.opts.Logger.Error("checkpoint: "+err.Error(), slog.String("path", s.path))
			s.retryLater()
		}
	}
}

// retryLater asks for another checkpoint after a pause, unless the store is closed meanwhile.
func (s *Store) retryLater() {
	pause := time.NewTimer(retryAfter)
	defer pause.Stop()
	select {
	case <-s.cp.quit:
	case <-pause.C:
		s.cp.wakeUp()
	}
}

// Throttle waits while the overlay is over twice its limit without large values: a single one may be over it, and small updates need not
// wait until the disk has it. When the file cannot take the updates (a full disk, for one) it returns why instead of waiting for ever.
func (s *Store) Throttle() error {
	return s.throttle(func() bool {
		all := s.activeBytes.Load()
		return all < stallAt*s.opts.Limit || all < largeStall*s.opts.Limit && all-s.activeLarge.Load() < stallAt*s.opts.Limit
	})
}

// ThrottleLarge is Throttle for who is about to store a large value: all that is in the overlay counts.
func (s *Store) ThrottleLarge() error { return s.throttleAt(stallAt * s.opts.Limit) }

// ThrottleReplay is Throttle for the replay of the log at the start.
func (s *Store) ThrottleReplay() error { return s.throttleAt(replayStall * s.opts.Limit) }

func (s *Store) throttleAt(limit int64) error {
	return s.throttle(func() bool { return s.activeBytes.Load() < limit })
}

func (s *Store) throttle(free func() bool) error {
	if free() {
		return nil
	}
	s.cp.mu.Lock()
	defer s.cp.mu.Unlock()
	s.cp.stalls.begin()
	defer s.cp.stalls.end()
	for !free() {
		if s.cp.err != nil {
			return s.cp.err
		}
		s.cp.wakeUp()
		s.cp.room.Wait()
	}
	return nil
}

// Checkpoint moves everything applied so far into the file.
func (s *Store) Checkpoint() error { return s.checkpoint(false) }

// Hold moves everything applied so far into the file and keeps the file as it is while f runs: updates go on
// in memory. Copies taken by f say that they are (Meta.Held), and afterwards the file's epoch has changed, so that they are told from the file.
func (s *Store) Hold(f func() error) error {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	s.changeMeta(func(m *Meta) { m.Held = true })
	err := s.checkpointLocked(false)
	if err == nil {
		err = f()
	}
	s.changeMeta(func(m *Meta) { m.Epoch, m.Held = m.Epoch+1, false })
	return errors.Join(err, s.checkpointLocked(false))
}

func (s *Store) checkpoint(clean bool) error {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	return s.checkpointLocked(clean)
}

// checkpointLocked writes everything applied so far: first an overlay left from a checkpoint that did not succeed,
// then the active one. The caller holds runMu.
func (s *Store) checkpointLocked(clean bool) error {
	if err := s.finishLeftover(); err != nil {
		return err
	}
	if err := s.finish(s.freeze(), clean); err != nil {
		return err
	}
	return s.prune(pruneEntries)
}

// finishLeftover writes an overlay left from a checkpoint that did not succeed. The caller holds runMu.
func (s *Store) finishLeftover() error {
	if left := s.leftover(); left != nil {
		return s.finish(left, false)
	}
	return nil
}

// leftover returns the frozen overlay, if any.
func (s *Store) leftover() *overlay {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	return s.view.Load().frozen
}

// finish writes a frozen overlay and tells those who wait for it. The caller holds runMu.
func (s *Store) finish(o *overlay, clean bool) error {
	begun := time.Now()
	err := s.flush(o, clean)
	s.cp.times.Observe(int64(time.Since(begun)))
	s.cp.mu.Lock()
	s.cp.err = err
	s.cp.room.Broadcast()
	s.cp.mu.Unlock()
	if err == nil {
		s.tellDone()
	}
	return err
}

func (s *Store) tellDone() {
	if s.cp.done != nil {
		s.cp.done(s.Meta())
	}
}

// freeze puts a fresh overlay before the active one, which from now on does not change, and returns the latter.
// The stamp of the frozen overlay is that of the last update in it, because both change under applyMu.
func (s *Store) freeze() *overlay {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	old := s.view.Load()
	o := old.active
	o.checkpoint, o.clearedBy = s.Meta().Checkpoints+1, s.cleared
	s.view.Store(newView(newOverlay(o.stamp, s.lww), o))
	old.release()
	s.activeBytes.Store(0)
	s.activeLarge.Store(0)
	s.cp.mu.Lock()
	defer s.cp.mu.Unlock()
	s.cp.room.Broadcast() // there is room in the fresh one already
	return o
}

// flush writes a frozen overlay into the file and takes it out of the view.
func (s *Store) flush(o *overlay, clean bool) error {
	if s.cp.log != nil {
		if err := s.cp.log.SyncTo(max(o.stamp, o.follow.at)); err != nil {
			return err
		}
	}
	if err := s.merge(o, clean); err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	old := s.view.Load()
	s.view.Store(newView(old.active, nil))
	old.release()
	return nil
}

// merge writes the overlay in transactions of a bounded size, because bbolt keeps all pages that a transaction touches
// in memory. Only the last one moves the stamp: after a crash in between, the log from the old stamp on has
// everything that was merged already, and applying it again leads to the same records. Until then the file by itself is
// of no single moment, which Meta.Merging tells.
func (s *Store) merge(o *overlay, clean bool) error {
	from, m := store.Start{Edge: true}, s.Meta()
	for {
		var last []byte
		err := s.file.Update(func(tx *bolt.Tx) (err error) {
			if from.Edge && o.cleared.Load() {
				if err := s.emptyBuckets(tx); err != nil {
					return err
				}
				m.Count, m.Bytes, m.Removals, m.Base = 0, 0, 0, 0
				m.Summed, m.Sum = true, 0
			}
			w := batchWriter{bucket: tx.Bucket([]byte(dataBucket)), meta: &m, limit: s.opts.Limit / batchShare}
			if s.lww {
				if w.versions, err = tx.CreateBucketIfNotExists([]byte(versionBucket)); err != nil {
					return err
				}
			}
			o.scan(from, w.visit)
			if w.err != nil {
				return w.err
			}
			m.Merging, m.MergeEpoch = w.next, m.Epoch
			if last = w.next; last == nil {
				m.Stamp, m.Checkpoints, m.Clean = o.stamp, o.checkpoint, clean
				m.ClearedAt, m.ClearedBy = o.clearedBy.Stamp, o.clearedBy.SID
				if o.follow.at != 0 {
					m.Position, m.PositionAt = o.follow.state, o.follow.at
				}
			}
			return writeMeta(tx, m)
		})
		if err != nil {
			return err
		}
		s.changeMeta(func(now *Meta) { *now = m })
		if last == nil {
			s.noteExact(usage{m.Count, m.Bytes})
			return nil
		}
		from = store.Start{Key: last}
	}
}

// emptyBuckets removes all records, and what is remembered of them.
func (s *Store) emptyBuckets(tx *bolt.Tx) error {
	names := []string{dataBucket}
	if s.lww {
		names = append(names, versionBucket)
	}
	for _, name := range names {
		if err := tx.DeleteBucket([]byte(name)); err != nil {
			return err
		}
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

const (
	arenaSize    = 1 << 20
	batchEntries = 20_000 // entries of one transaction: each may touch a page, which takes about 7 KiB
	batchShare   = 4      // and at most this part of the overlay's limit
)

// batchWriter puts overlay entries into the file and keeps the sums right.
type batchWriter struct {
	bucket  *bolt.Bucket
	meta    *Meta
	limit   int64
	entries int
	bytes   int64
	key     []byte // scratch: bbolt copies keys
	arena   []byte // values, which bbolt refers to until the commit
	next    []byte // key of the last entry, when there are more than the transaction takes

	versions *bolt.Bucket // nil where the file keeps none
	err      error
}

// visit takes one entry. The one too many ends the batch.
func (w *batchWriter) visit(key, flagged []byte) bool {
	if w.entries == batchEntries || (w.bytes >= w.limit && w.entries > 0) {
		w.next = append(make([]byte, 0, len(w.key)), w.key[1:]...)
		return false
	}
	w.entries++
	w.bytes += int64(len(key) + len(flagged))
	return w.write(key, flagged)
}

func (w *batchWriter) write(key, flagged []byte) bool {
	w.key = appendBoltKey(w.key[:0], key)
	if w.versions != nil {
		if w.err = w.writeVersion(flagged); w.err != nil {
			return false
		}
	}
	at, old := w.key, w.bucket.Get(w.key)
	if old != nil {
		w.meta.dropRecord(key, old)
	}
	if flagged[0]&flagLive == 0 {
		if old != nil {
			w.err = w.bucket.Delete(at)
		}
		return w.err == nil
	}
	value := flagged[valueAt(flagged[0]):]
	w.meta.addRecord(key, value)
	w.err = w.bucket.Put(at, w.keep(value))
	return w.err == nil
}

// writeVersion puts what the overlay has noted of the key into the file. An expired or evicted record, of which it has nothing, becomes a
// removal.
func (w *batchWriter) writeVersion(flagged []byte) error {
	w.key[0] = versionPrefix
	defer func() { w.key[0] = keyPrefix }()
	old, known := decodeEntry(w.versions.Get(w.key))
	e, noted := notedEntry(flagged)
	if !noted {
		if !known || flagged[0]&flagLive != 0 || old.Removed {
			return nil
		}
		e = LastUpdate{old.Version, true}
	}
	if known && old.Removed {
		w.meta.Removals--
	}
	if e.Removed {
		w.meta.Removals++
	}
	var room [entrySize]byte
	return w.versions.Put(w.key, w.keep(appendEntry(room[:0], e)))
}

// keep copies value to where it stays until the transaction ends.
func (w *batchWriter) keep(value []byte) []byte {
	if len(value) > cap(w.arena)-len(w.arena) {
		w.arena = make([]byte, 0, max(arenaSize, len(value)))
	}
	at := len(w.arena)
	w.arena = pieces.Append(w.arena, value)
	return w.arena[at:len(w.arena):len(w.arena)]
}

// AskCheckpoint asks for a checkpoint without waiting for it.
func (s *Store) AskCheckpoint() { s.cp.wakeUp() }

// Unwritten returns the bytes of memory of the updates that the file is still to take.
func (s *Store) Unwritten() int64 {
	v := s.acquire()
	defer v.release()
	sum := s.activeBytes.Load()
	if v.frozen != nil {
		sum += v.frozen.tree.Bytes()
	}
	return sum
}

// Reusable returns about how many bytes of updates the file can take without growing, rather too few: what it occupies beside its
// records, if their pages are half full. While a checkpoint writes nobody can tell: 0.
func (s *Store) Reusable() int64 {
	if s.leftover() != nil {
		return 0
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	const block, entry, halfFull = 512, 16, 2
	m := s.Meta()
	return max(0, int64(stat.Blocks)*block-halfFull*(m.Bytes+entry*m.Count))
}
