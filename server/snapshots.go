package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
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
	Compressor string        // of new ones (-bgsc): none, zlib, lzo, lzma, zstd, s2; another name is taken for none
}

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
	return vfs.MakeDir(vfs.OS{}, c.Dir, mode) // its name survives a power cut, and so do the snapshots
}

// snapshots takes snapshots of all databases. It owns one goroutine, from start to stop.
type snapshots struct {
	catalog *db.Catalog
	log     logger
	opts    snapshot.Options
	every   *pace
	quit    chan struct{}
	wg      sync.WaitGroup

	stats snapshotStats

	mu    sync.Mutex              // held while snapshots are taken
	holds []*ulog.Hold            // of each database of the command line: see keep; nil for those that need no log
	own   map[string][]ulog.Stamp // see ownSnapshots
}

// newSnapshots returns nil without Config.Snapshots.Dir.
func (p *process) newSnapshots() *snapshots {
	c := p.cfg.Snapshots
	if c.Dir == "" {
		return nil
	}
	compressor, known := snapshot.ParseCompressor(c.Compressor)
	if !known && c.Compressor != "" {
		p.log.info("there is no compressor %q: snapshots are not compressed", c.Compressor)
	}
	return &snapshots{
		log:   p.log,
		opts:  snapshot.Options{FS: vfs.OS{}, Dir: c.Dir, Compressor: compressor},
		every: p.tuned.snapshots,
		quit:  make(chan struct{}),
		holds: make([]*ulog.Hold, len(p.cfg.Databases)),
		own:   map[string][]ulog.Stamp{},
	}
}

// start begins to take snapshots from time to time.
func (s *snapshots) start() {
	if s == nil {
		return
	}
	s.wg.Go(func() {
		s.every.run(s.quit, func() {
			s.log.info("snapshotting databases")
			_ = rescue.Do(s.log.Logger, backgroundWork, func() { s.takeAll(newPauses(s.quit).pause) })
		})
	})
}

// stop interrupts a snapshot under way and ends the goroutine.
func (s *snapshots) stop() {
	if s == nil {
		return
	}
	close(s.quit)
	s.wg.Wait()
}

// last takes the snapshots of the end, when nobody uses the databases any more. It reports whether all could be taken.
func (s *snapshots) last() bool {
	if s == nil {
		return true
	}
	s.log.system("snapshotting databases")
	ok := s.takeAll(nil)
	if !ok {
		s.log.system("snapshotting was abandoned")
	}
	return ok
}

// takeAll takes a snapshot of one database after the other, and goes on after a failure.
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
	for _, i := range s.indexes() {
		err := s.takeLocked(i, pause)
		if errors.Is(err, snapshot.ErrStopped) {
			return false
		}
		if err != nil {
			s.stats.failed.Add(1)
			s.log.error("could not take a snapshot of %s: %v", s.catalog.Numbered(i).Expr(), err)
			ok = false
		}
	}
	return ok
}

// indexes are those of all databases, the services' one included: that is a file, and its snapshot is for people to load.
func (s *snapshots) indexes() []int {
	all := make([]int, 0, s.catalog.Len()+1)
	for i := range s.catalog.Len() {
		all = append(all, i)
	}
	if d := s.catalog.Services(); d != nil {
		all = append(all, d.Index())
	}
	return all
}

// takeLocked takes a snapshot of one database. The caller holds mu.
func (s *snapshots) takeLocked(i int, pause func() error) error {
	d := s.catalog.Numbered(i)
	frozen, err := d.Freeze()
	if errors.Is(err, dberr.ErrNotImplemented) { // a plugged engine that keeps nothing
		return nil
	}
	if err != nil {
		return err
	}
	err = s.write(i, d.OnDisk(), frozen, pause)
	if err := errors.Join(err, frozen.Close()); err != nil {
		return err
	}
	s.stats.taken(i, frozen.Stamp())
	if err := s.catalog.SnapshotTaken(d, filepath.Join(s.opts.Dir, snapshot.Name(i)), frozen.Stamp()); err != nil {
		return fmt.Errorf("note the snapshot in the update log's directory: %w", err)
	}
	s.keep(d, frozen.Stamp())
	return nil
}

// keep has the update log keep what comes after the newest snapshot of a database in memory that is on the disk: a restart loads the snapshot
// and brings in the rest. What was removed earlier would be lost, whatever a kill leaves of the next snapshot. The caller holds mu, or
// nobody else uses the database yet.
func (s *snapshots) keep(d *db.DB, at ulog.Stamp) {
	log := s.catalog.Log()
	switch i := d.Index(); {
	case log == nil || d.OnDisk():
	case s.holds[i] == nil:
		s.holds[i] = log.Hold("the snapshots of "+d.Expr(), at)
	default:
		s.holds[i].Advance(at)
	}
}

// write puts a snapshot into the directory, and says so there where it will not be loaded as long as the database file is there.
func (s *snapshots) write(i int, file bool, frozen *db.Frozen, pause func() error) error {
	opts := s.opts
	opts.Pause = pause
	if !file {
		return opts.Write(i, frozen)
	}
	if err := s.noteOwn(i, append(s.lastOwn(i), frozen.Stamp())...); err != nil {
		return err
	}
	if err := opts.Write(i, frozen); err != nil {
		return err
	}
	return s.noteOwn(i, frozen.Stamp())
}

// beforeRemoval has snapshots taken of the databases in memory that files of the update log with updates up to a stamp are about to be removed
// for: without a snapshot that is newer, they could not be brought back after a crash. It goes on after a failure.
func (s *snapshots) beforeRemoval(upTo ulog.Stamp) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed error
	for i, hold := range s.holds {
		if hold == nil || hold.From() >= upTo {
			continue
		}
		if err := s.takeLocked(i, nil); err != nil {
			failed = errors.Join(failed, fmt.Errorf("take a snapshot of %s first: %w", s.catalog.DB(i).Expr(), err))
		}
	}
	return failed
}

// pauses leaves the processors to the clients while a snapshot is taken: it rests as long as it works.
type pauses struct {
	quit  <-chan struct{}
	calls int
	since time.Time // when the work began
	timer *time.Timer
}

const (
	workSlice    = 200 * time.Microsecond // how long a client may have to wait for the processor
	callsPerLook = 4                      // records between two looks at the clock
)

func newPauses(quit <-chan struct{}) *pauses {
	return &pauses{quit: quit, since: time.Now(), timer: time.NewTimer(0)}
}

// pause is called between records. It returns snapshot.ErrStopped when the server ends.
func (p *pauses) pause() error {
	if p.calls++; p.calls%callsPerLook != 0 {
		return nil
	}
	worked := time.Since(p.since)
	if worked < workSlice {
		return nil
	}
	p.timer.Reset(worked)
	select {
	case <-p.quit:
		return snapshot.ErrStopped
	case <-p.timer.C:
	}
	p.since = time.Now()
	return nil
}
