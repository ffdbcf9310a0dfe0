package ulog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"gotycoon/internal/vfs"
)

var (
	errNoRecord    = errors.New("no record begins here")
	errNoEnd       = errors.New("record without end mark")
	errPartial     = errors.New("incomplete record")
	errChecksum    = errors.New("checksum of a group of records does not match")
	errUncommitted = errors.New("group of records without commit record")
)

// A tornError says that what follows off is not (yet) a complete group and need not be one.
type tornError struct {
	off int64
	err error
}

func (e *tornError) Error() string {
	return fmt.Sprintf("incomplete group at offset %d: %v", e.off, e.err)
}

// DamageError says that a segment holds bytes that were once good and no longer are.
type DamageError struct {
	File   string // path of the segment
	Offset int64  // where the damage begins, in bytes
	Err    error  // what is wrong there
}

// Error names the file, the offset and what is wrong.
func (e *DamageError) Error() string {
	return fmt.Sprintf("damaged update log %s at offset %d: %v", e.File, e.Offset, e.Err)
}

// Unwrap returns Err.
func (e *DamageError) Unwrap() error { return e.Err }

// A scanner walks over the records of a segment and decides which may be trusted.
//
// Its rules, with "size" for what the header says:
//   - Up to the first commit record of the segment each record stands for itself: the original
//     wrote it.
//   - From then on records count in groups, up to a commit record that matches them.
//   - Records below size that no commit record follows were appended by the original and count,
//     too.
//   - Anything bad that begins below size is damage, anything bad behind it is a torn write.
type scanner struct {
	win       window
	path      string // for errors
	head      header
	off       int64 // end of what was accepted
	last      Stamp // largest stamp accepted
	committed bool  // a commit record was seen
	closed    bool  // a commit record stands right before off

	keeps  bool // somebody wants to know the following
	state  note // of the newest position record accepted
	update made // the newest update accepted
}

// A record is one record of a segment.
type record struct {
	stamp Stamp
	raw   []byte // the whole record; valid until the next record is read
	end   int64  // offset behind it
}

func (r *record) message() []byte { return r.raw[RecordHead : len(r.raw)-1] }

// made says when an update was made, and by which server.
type made struct {
	at Stamp
	by uint16
}

// A run is the state of one call of scanner.next.
type run struct {
	pos    int64  // end of the records seen
	vouch  int64  // end of the records that lie below the size in the header
	last   Stamp  // largest stamp seen
	crc    uint32 // over the records seen
	count  uint32
	state  note // of the newest position record seen
	update made // the newest update seen
}

// next accepts the next records that stand or fall together. It reads nothing behind limit. The
// error is nil, io.EOF at limit, a *tornError, a *DamageError, or that of a failed read.
func (s *scanner) next(limit int64) error {
	g := run{pos: s.off, vouch: s.off}
	for {
		r, err := s.record(s.off, g.pos, limit)
		if err != nil {
			return s.stop(&g, limit, err)
		}
		if isCommit(r.message()) {
			return s.commit(&g, &r)
		}
		g.add(&r, s.head.size)
		if s.keeps {
			g.note(r.message(), r.stamp)
		}
		if !s.committed {
			s.accept(g.pos, g.last, false)
			s.noteUpdate(&g)
			return nil
		}
	}
}

func (g *run) add(r *record, size int64) {
	g.crc = crc32.Update(g.crc, castagnoli, r.raw)
	g.count++
	g.last = max(g.last, r.stamp)
	g.pos = r.end
	if r.end <= size {
		g.vouch = r.end
	}
}

// note remembers what a position record says, or when an update was made.
func (g *run) note(msg []byte, at Stamp) {
	if !isPosition(msg) {
		if len(msg) >= prefixSize {
			g.update = made{at, binary.BigEndian.Uint16(msg)}
		}
		return
	}
	if f, _, err := parsePosition(nil, msg); err == nil && len(f.State) > 0 {
		g.state = note{bytes.Clone(f.State), at}
	}
}

// noteUpdate takes over the newest update of a run that is accepted.
func (s *scanner) noteUpdate(g *run) {
	if g.update.at != 0 {
		s.update = g.update
	}
}

func (s *scanner) accept(off int64, last Stamp, closed bool) {
	s.off, s.last, s.closed = off, max(s.last, last), closed
	s.committed = s.committed || closed
}

// A badFrame is a record that cannot be read; end is where it would end if its size is right.
type badFrame struct {
	pos, end int64
	err      error
}

func (e *badFrame) Error() string { return e.err.Error() }

// record returns the record at pos, io.EOF at limit, or a *badFrame.
func (s *scanner) record(keep, pos, limit int64) (record, error) {
	if pos == limit {
		return record{}, io.EOF
	}
	b, err := s.win.at(keep, pos, int(min(RecordHead, limit-pos)), limit)
	if err != nil {
		return record{}, err
	}
	if b[0] != startMark {
		return record{}, &badFrame{pos, pos, errNoRecord}
	}
	if len(b) < RecordHead {
		return record{}, &badFrame{pos, pos + frameSize, errPartial}
	}
	stamp, n := Stamp(binary.BigEndian.Uint64(b[1:])), int64(binary.BigEndian.Uint32(b[9:]))
	end := pos + frameSize + n
	if end > limit {
		return record{}, &badFrame{pos, end, errPartial}
	}
	if b, err = s.win.at(keep, pos, int(frameSize+n), limit); err != nil {
		return record{}, err
	}
	if b[len(b)-1] != endMark {
		return record{}, &badFrame{pos, pos, errNoEnd}
	}
	return record{stamp, b, end}, nil
}

// commit ends a run at commit record r.
func (s *scanner) commit(g *run, r *record) error {
	c, err := parseCommit(r.message())
	if errors.Is(err, errNewer) {
		// A newer program has acknowledged these records. Behind the size of the header they would
		// count as a torn write, which a start cuts off.
		return &DamageError{File: s.path, Offset: g.pos, Err: err}
	}
	if err != nil {
		return s.bad(g.pos, g.pos, err)
	}
	foreign := c.count == 0 && g.count > 0 // marks the end of what the original wrote
	if foreign {
		if g.vouch != g.pos {
			return s.bad(s.off, g.pos, errUncommitted)
		}
		g.crc = 0
	}
	if commitCRC(g.crc, r.raw) != c.crc {
		return s.bad(s.off, s.off, errChecksum)
	}
	s.accept(r.end, max(g.last, r.stamp), true)
	s.noteUpdate(g)
	if g.state.state != nil {
		s.state = g.state
	}
	return nil
}

// stop ends a run that no commit record ends.
func (s *scanner) stop(g *run, limit int64, err error) error {
	bad := &badFrame{limit, limit, errUncommitted}
	if !errors.As(err, &bad) && !errors.Is(err, io.EOF) {
		return err
	}
	cutShort := limit < s.head.size && bad.end <= s.head.size && errors.Is(bad.err, errPartial)
	if bad.pos < min(s.head.size, limit) && !cutShort {
		return s.bad(bad.pos, bad.pos, bad.err)
	}
	if g.vouch > s.off {
		s.accept(g.vouch, g.last, false)
		s.noteUpdate(g)
		return nil
	}
	if s.off == limit {
		return io.EOF
	}
	return &tornError{s.off, bad.err}
}

// bad returns the error for bad bytes at pos, in a run that has to be given up from off on.
func (s *scanner) bad(off, pos int64, err error) error {
	if pos < s.head.size {
		return &DamageError{File: s.path, Offset: off, Err: err}
	}
	return &tornError{s.off, err}
}

// segmentState returns the state that an older segment ends with. Damage is no error here: a reader
// that needs the damaged records reports it.
func segmentState(fs vfs.FS, path string) (note, error) {
	f, err := fs.OpenFile(path, readOnly, 0)
	if err != nil {
		return note{}, err
	}
	defer f.Close()
	head, err := readHeader(f)
	if err != nil {
		return note{}, nil
	}
	size, err := f.Size()
	if err != nil {
		return note{}, err
	}
	s := scanner{win: window{f: f}, path: path, head: head, off: headerSize, keeps: true}
	for err == nil {
		err = s.next(size)
	}
	var torn *tornError
	var damage *DamageError
	if !errors.Is(err, io.EOF) && !errors.As(err, &torn) && !errors.As(err, &damage) {
		return note{}, err
	}
	return s.state, nil
}
