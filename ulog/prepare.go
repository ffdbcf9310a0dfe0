package ulog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"gotycoon/internal/vfs"
)

// errTorn means that the newest segment ends in an incomplete group and Options.NoRepair forbids to
// cut it.
var errTorn = errors.New("update log ends in an incomplete group")

// Opening a log has two halves. Prepare locks the log and looks at it; Begin mends it and makes it
// ready for updates. Between the two the caller knows which log it is, where it ends and what is
// wrong with it, and no byte has been changed. The caller then decides whether to go on. A start
// that is refused leaves every byte as it was, for people to look at and for a later start with the
// right options.
//
//	Prepare   lock, identity, headers of the segments, records of the newest       reads only
//	          the caller decides: Begin, or Close
//	Begin     directory, first segment, gap, torn tail, header, identity, flusher  writes

// A Prepared is a log that is locked, and not changed yet. Begin or Close ends it.
type Prepared struct {
	log   *Log
	f     vfs.File // the newest segment, locked; nil where there is none
	n     uint64   // its number, 1 where there is none
	size  int64    // of the file, without the zeros that a process which died has left
	whole int64    // of the file, with them
	fresh bool     // there was no segment when the directory was looked at
	known bool     // the log has an identity on the disk; otherwise log.id was just made
	empty bool     // the newest segment has no header yet
	jumps bool     // segments are missing between others
	lost  bool     // the newest segment has lost updates: Begin leaves a gap
	good  scanner  // stands at the end of the good records of a segment that is not empty
	gap   *fresh   // where Begin goes on when the newest segment has lost updates
	flaws []string // what is wrong with the log, each said once
}

// Prepare locks the log in a directory and looks at it, without changing anything: where there is
// no log, none is made. It waits up to 10 seconds for another process that has the log open. Damage
// in front of the end of the newest segment is a *DamageError. Of older segments only the headers
// are looked at.
func Prepare(dir string, o Options) (*Prepared, error) {
	o.setDefaults()
	l := &Log{folder: folder{dir, o, o.FS, o.Logger}, failed: make(chan struct{})}
	l.writer.log = l
	l.holds = holds{mu: &l.mu, now: o.Now, all: map[*Hold]struct{}{}}
	l.queue.turn = make(chan struct{}, 1)
	l.aheads.turn = make(chan struct{}, 1)
	p := &Prepared{log: l}
	if err := p.lookAtNewest(); err != nil {
		return nil, fmt.Errorf("open update log: %w", errors.Join(err, p.Close()))
	}
	return p, nil
}

// ID returns the identity that the log has, or will have after Begin.
func (p *Prepared) ID() [16]byte { return p.log.id }

// Dir returns the directory as given to Prepare.
func (p *Prepared) Dir() string { return p.log.dir }

// Last returns the newest stamp in the log. If the newest segment has lost updates, Last is a stamp
// greater than theirs (see behindLoss); without a log it is 0.
func (p *Prepared) Last() Stamp {
	if p.lost {
		return p.behindLoss()
	}
	return p.log.last
}

// behindLoss returns a stamp that is greater than all that the newest segment can have lost. The
// header of a segment that was cut off says how far its stamps went. An empty segment has lost its
// header too; then the clock is the only bound, and the stamp is right as long as the clock is not
// behind.
func (p *Prepared) behindLoss() Stamp {
	l := p.log
	return max(l.last+1, p.good.head.last+1, StampAt(l.opts.Now()))
}

// Flaws says what the log has lost, in one line for each file; nil where nothing shows.
func (p *Prepared) Flaws() []string { return p.flaws }

// Whole reports whether the log has all segments from its first one to the newest, and none of them
// shows a flaw.
func (p *Prepared) Whole() bool { return len(p.flaws) == 0 && !p.jumps }

// Close lets go of the log as it is.
func (p *Prepared) Close() error {
	f := p.f
	if p.f = nil; f == nil {
		return nil
	}
	return f.Close()
}

// lookAtNewest locks the newest segment, if there is one, and looks at it.
func (p *Prepared) lookAtNewest() error {
	l := p.log
	for {
		nums, err := listSegments(l.fs, l.dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		p.n, p.fresh = 1, len(nums) == 0
		if p.fresh {
			return p.look()
		}
		p.n = nums[len(nums)-1]
		p.jumps = p.n-nums[0] != uint64(len(nums)-1)
		err = p.lock(readWrite)
		if err == nil {
			return p.look()
		}
		if !errors.Is(err, errNewest) {
			return err
		}
	}
}

// lock opens and locks segment p.n.
func (p *Prepared) lock(flag int) error {
	l := p.log
	f, err := l.fs.OpenFile(l.segmentPath(p.n), flag, filePerm)
	// The process that has the log open may have gone on to another segment and removed this one.
	if errors.Is(err, os.ErrNotExist) && flag == readWrite {
		if newer := l.isNewest(p.n); newer != nil {
			return newer
		}
	}
	if err != nil {
		return err
	}
	if err = l.lock(f, p.n); err != nil {
		return errors.Join(err, f.Close())
	}
	p.f = f
	return nil
}

// look sets the state of the log from its files.
func (p *Prepared) look() error {
	l := p.log
	used, err := used(l.fs, l.dir)
	if err != nil {
		return err
	}
	if err = p.identify(); err != nil {
		return err
	}
	if l.last, err = p.newestHeaderStamp(); err != nil {
		return err
	}
	p.empty, p.size = true, 0
	if p.f != nil {
		if p.size, err = p.f.Size(); err != nil {
			return err
		}
		if p.empty, err = neverBegun(p.f, p.size); err != nil {
			return err
		}
	}
	if !p.empty {
		return p.lookAtRecords()
	}
	p.lost = p.lostNewest(used)
	l.note, err = l.newestNote(note{}, p.n, true)
	return err
}

// identify reads the identity, or makes one for a log that has none.
func (p *Prepared) identify() error {
	id, err := Identity(p.log.fs, p.log.dir)
	p.known = err == nil
	if errors.Is(err, os.ErrNotExist) {
		if id = p.log.id; id == [16]byte{} { // otherwise the caller has been told already
			id, err = newIdentity()
		} else {
			err = nil
		}
	}
	p.log.id = id
	return err
}

// lookAtRecords checks the records of the newest segment.
func (p *Prepared) lookAtRecords() error {
	l, path := p.log, p.log.segmentPath(p.n)
	head, err := readHeader(p.f)
	if err != nil {
		return adviseRepair(&DamageError{File: path, Err: err})
	}
	p.whole = p.size
	if l.opts.SyncEach { // otherwise they may be updates that the disk had not got when the power failed
		if p.size, err = withoutRoom(p.f, p.size, head.size); err != nil {
			return err
		}
	}
	p.good = scanner{win: window{f: p.f}, path: path, head: head, off: headerSize, keeps: true}
	s := &p.good
	if err = s.all(p.size); err != nil {
		return err
	}
	if s.last >= maxStamp {
		return adviseRepair(&DamageError{File: path, Offset: headerSize, Err: errStamp})
	}
	if !s.committed { // the original wrote it, and promises nothing
		s.last = max(s.last, head.last)
	}
	l.last, l.update = max(l.last, s.last), s.update
	if l.note, err = l.newestNote(s.state, p.n, s.off <= headerSize+commitSize); err != nil {
		return err
	}
	p.lost = p.size < head.size
	if l.opts.NoRepair && (s.off < p.size || p.lost) {
		return fmt.Errorf("%w: %s: %d good bytes, %d in all, %d by its header", errTorn, path, s.off, p.size, head.size)
	}
	if p.lost {
		p.say(fmt.Sprintf("the update log file %s has been cut off: at least %d bytes of updates are missing, of its %d. %s",
			path, head.size-p.size, head.size, l.remedyNewest(p.n)))
	}
	return nil
}

// say logs what is wrong with the log, once.
func (p *Prepared) say(flaw string) {
	if !slices.Contains(p.flaws, flaw) {
		p.flaws = append(p.flaws, flaw)
		p.log.logger.Error(flaw)
	}
}

// newestHeaderStamp returns the largest stamp in the headers of the segments before the newest, and
// logs what is wrong with these segments. Without that line nobody might learn of the damage: a
// reader reports it only when somebody needs the records.
func (p *Prepared) newestHeaderStamp() (last Stamp, err error) {
	nums, err := listSegments(p.log.fs, p.log.dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	for _, num := range nums {
		if num >= p.n {
			break
		}
		if h, herr := p.checkHead(num); herr == nil {
			last = max(last, h.last)
		}
	}
	return last, err
}

// checkHead returns the header of an older segment, and logs what the segment has lost.
func (p *Prepared) checkHead(n uint64) (header, error) {
	l := p.log
	h, size, err := statSegment(l.fs, l.dir, n)
	if errors.Is(err, os.ErrNotExist) {
		return h, err
	}
	if flaw := headFlaw(l.fs, l.dir, n, h, size, err); flaw != "" {
		p.say(fmt.Sprintf("the update log file %s. %s", flaw, remedyOlder))
	}
	return h, err
}

// lostNewest reports whether the newest segment, which is empty, has had updates, and logs the
// loss. It has had none when it is the first segment of a new log, which a crash may have left
// empty.
func (p *Prepared) lostNewest(used bool) bool {
	l := p.log
	if p.n == 1 && !used {
		return false
	}
	if p.fresh {
		p.say(fmt.Sprintf("the update log %s has lost all its files: the updates that they had are missing. If there are copies of "+
			"them, stop, put the copies in place and start again", l.dir))
		return true
	}
	p.say(fmt.Sprintf("the update log file %s is empty: the updates that it had are missing. %s", l.segmentPath(p.n), l.remedyNewest(p.n)))
	return true
}

// neverBegun reports whether a segment is empty, or looks as a crash or a full disk leaves the
// first segment of a log that was just being created: too short for a record, and nothing but zeros
// or the front of what beginSegment writes.
func neverBegun(f vfs.File, size int64) (bool, error) {
	const fresh = headerSize + commitSize
	if size > fresh {
		return false, nil
	}
	b := make([]byte, fresh)
	if _, err := f.ReadAt(b[:size], 0); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	want := encodeHeader(header{size: fresh})[:min(size, headerSize-8)]
	return bytes.Equal(b, make([]byte, fresh)) || size < fresh && bytes.HasPrefix(b, want), nil
}

// all accepts everything good up to limit. A torn tail is no error.
func (s *scanner) all(limit int64) error {
	for {
		err := s.next(limit)
		var torn *tornError
		var damage *DamageError
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.As(err, &torn):
			return nil
		case errors.As(err, &damage):
			return adviseRepair(damage)
		default:
			return err
		}
	}
}

func adviseRepair(err *DamageError) error {
	if errors.Is(err, errNewer) {
		return fmt.Errorf("%s at offset %d: %w", err.File, err.Offset, err.Err)
	}
	return fmt.Errorf("%w (records before it are good; put back a copy of %s. To go on without what comes after, bring each database file up to date with "+
		"kttimedmgr vacuum -onr FILE, and then empty the damaged one with truncate -s 0 %s: who needs its updates then meets a gap)",
		err, filepath.Base(err.File), err.File)
}
