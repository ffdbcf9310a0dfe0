package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/internal/rescue"
	"gotycoon/internal/vfs"
	"gotycoon/snapshot"
	"gotycoon/ulog"
)

// SnapshotConfig is where snapshots of all databases are kept, and how often they are taken.
type SnapshotConfig struct {
	Dir        string        // directory, made if its parent is there (-bgs); empty: no snapshots
	Interval   time.Duration // between two of them (-bgsi); 0 or less: only when the server ends
	Compressor string        // of new snapshots (-bgsc): zlib, lzo, lzma, zstd, s2, else none
}

// check finds what is wrong with the directory, and makes it.
func (c *SnapshotConfig) check() error {
	if c.Dir == "" {
		return nil
	}
	const mode = 0o755
	if err := os.Mkdir(c.Dir, mode); err != nil {
		if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
			return fmt.Errorf("%s: could not open the directory", c.Dir)
		}
	}
	// The name of the directory is synced: a power cut that took the name would take the snapshots.
	return vfs.MakeDir(vfs.OS{}, c.Dir, mode)
}

// snapshots takes snapshots of all databases. It owns one goroutine, from start to stop.
type snapshots struct {
	log     logger
	opts    snapshot.Options
	every   *pace
	catalog *db.Catalog // set by open
	started bool
	quit    chan struct{}
	wg      sync.WaitGroup

	stats snapshotStats

	mu      sync.Mutex   // held while snapshots are taken
	own     ownSnapshots // of database files
	holds   []*ulog.Hold // of each database of the command line, see keep; nil: it has none
	formers formers      // of the snapshots of databases in memory, and of what is held for them
}

// newSnapshots prepares snapshots of a number of databases. lasting reports whether the update log
// is removed by itself. newSnapshots returns nil without a directory; the methods that a server
// calls at its start and its end take a nil *snapshots.
func newSnapshots(c SnapshotConfig, databases int, every *pace, lasting func() bool, log logger) *snapshots {
	if c.Dir == "" {
		return nil
	}
	compressor, known := snapshot.ParseCompressor(c.Compressor)
	if !known && c.Compressor != "" {
		log.info("there is no compressor %q: snapshots are not compressed", c.Compressor)
	}
	fs := vfs.OS{}
	return &snapshots{
		log:     log,
		opts:    snapshot.Options{FS: fs, Dir: c.Dir, Compressor: compressor},
		every:   every,
		quit:    make(chan struct{}),
		own:     ownSnapshots{fs: fs, dir: c.Dir, log: log, stamps: map[string][]ulog.Stamp{}},
		holds:   make([]*ulog.Hold, databases),
		formers: newFormers(c.Dir, databases, lasting, log),
	}
}

// start begins to take snapshots from time to time.
func (s *snapshots) start() {
	if s == nil {
		return
	}
	s.started = true
	s.wg.Go(func() {
		s.every.run(s.quit, func() {
			s.log.info("snapshotting databases")
			_ = rescue.Do(s.log.Logger, backgroundWork, func() { s.takeAll(newPauses(s.quit).pause) })
		})
	})
}

// stop interrupts a snapshot in execution and ends the goroutine.
func (s *snapshots) stop() {
	if s == nil {
		return
	}
	close(s.quit)
	s.wg.Wait()
}

// last takes the snapshots of the end, when nobody uses the databases any more, and reports whether
// all could be taken. Before start no client has changed anything, so last takes none.
func (s *snapshots) last() bool {
	if s == nil || !s.started {
		return true
	}
	s.log.system("snapshotting databases")
	ok := s.takeAll(nil)
	if !ok {
		s.log.system("snapshotting was abandoned")
	}
	return ok
}

// takeAll takes a snapshot of one database after the other, and goes on after a failure. It reports
// whether all could be taken.
func (s *snapshots) takeAll(pause func() error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeAllLocked(pause)
}

// takeAllLocked is takeAll for callers that hold mu.
func (s *snapshots) takeAllLocked(pause func() error) bool {
	begun := time.Now()
	defer func() { s.stats.took(time.Since(begun)) }()
	ok := true
	for _, d := range s.catalog.All() {
		err := s.takeLocked(d, pause)
		if errors.Is(err, snapshot.ErrStopped) {
			return false
		}
		if err != nil {
			s.stats.failed.Add(1)
			s.log.error("could not take a snapshot of %s: %v", d.Info().Expr, err)
			ok = false
		}
	}
	return ok
}

// takeLocked takes a snapshot of one database. The services' database has snapshots too; it is a
// file, so they are for people to load. The caller holds mu.
func (s *snapshots) takeLocked(d *db.DB, pause func() error) error {
	frozen, err := d.Freeze()
	if errors.Is(err, dberr.ErrNotImplemented) { // a plugged engine that keeps nothing
		return nil
	}
	if err != nil {
		return err
	}
	err = s.write(d, frozen, pause)
	if err := errors.Join(err, frozen.Close()); err != nil {
		return err
	}
	s.stats.taken(d.Index(), frozen.Stamp())
	if err := s.catalog.SnapshotTaken(d, filepath.Join(s.opts.Dir, snapshot.Name(d.Index())), frozen.Stamp()); err != nil {
		return fmt.Errorf("note the snapshot in the update log's directory: %w", err)
	}
	s.keep(d, frozen.Stamp())
	return nil
}

// write puts a snapshot into the directory. Of a database file it notes that the snapshot is the
// server's own.
func (s *snapshots) write(d *db.DB, frozen *db.Frozen, pause func() error) error {
	opts := s.opts
	opts.Pause = pause
	if !d.Info().OnDisk {
		s.formers.keepFormer(d.Index())
		return opts.Write(d.Index(), frozen)
	}
	if err := s.own.noteNext(d.Index(), frozen.Stamp()); err != nil {
		return err
	}
	if err := opts.Write(d.Index(), frozen); err != nil {
		return err
	}
	return s.own.note(d.Index(), frozen.Stamp())
}

// keep holds the update log for a database in memory, from the stamp of its newest complete
// snapshot: a restart loads this snapshot and replays the log from the stamp. The hold moves on
// only when the next snapshot is on the disk. If it moved on when the next snapshot begins, a kill
// before that snapshot is complete would lose the updates between the two. Where the former
// snapshot is kept, the hold stays at its stamp. The caller holds mu, or nobody else uses the
// database yet.
func (s *snapshots) keep(d *db.DB, at ulog.Stamp) {
	log, i := s.catalog.Log(), d.Index()
	if log == nil || i >= len(s.holds) || d.Info().OnDisk && !s.formers.lasting() {
		return
	}
	s.formers.newest[i] = at
	if s.formers.former[i] > 0 {
		at = s.formers.former[i]
	}
	if s.holds[i] == nil {
		s.holds[i] = log.Hold(ulog.Holder{Kind: ulog.Snapshot, What: "the snapshots of " + d.Info().Expr}, at)
		return
	}
	s.holds[i].Advance(at)
}

// beforeRemoval is called before files of the update log with updates up to a stamp are removed. It
// takes snapshots of the databases in memory whose newest snapshot is older than the stamp: with
// the old snapshot a restart would miss the removed updates. After a failure it goes on with the
// next database.
func (s *snapshots) beforeRemoval(upTo ulog.Stamp) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed error
	for i, hold := range s.holds {
		if hold == nil || s.formers.newest[i] >= upTo {
			continue
		}
		if err := s.takeLocked(s.catalog.DB(i), nil); err != nil {
			failed = errors.Join(failed, fmt.Errorf("take a snapshot of %s first: %w", s.catalog.DB(i).Info().Expr, err))
		}
	}
	return failed
}

// snapshotStats is the figures of snapshots for a scrape, which does not wait for a snapshot in
// execution. The zero value is empty.
type snapshotStats struct {
	failed atomic.Int64
	rounds atomic.Int64 // all databases, one after the other
	nanos  atomic.Int64 // of the latest round

	mu     sync.Mutex // protects newest
	newest map[int]ulog.Stamp
}

// taken notes a snapshot on the disk.
func (s *snapshotStats) taken(index int, at ulog.Stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil {
		s.newest = map[int]ulog.Stamp{}
	}
	s.newest[index] = max(s.newest[index], at)
}

func (s *snapshotStats) took(d time.Duration) {
	s.rounds.Add(1)
	s.nanos.Store(int64(d))
}

// at returns the instant of the newest snapshot of a database; ok is false when there is none.
func (s *snapshotStats) at(index int) (at ulog.Stamp, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok = s.newest[index]
	return at, ok
}
