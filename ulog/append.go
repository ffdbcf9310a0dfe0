package ulog

import (
	"bytes"
	"slices"
)

// kickSize is how many pending bytes make the flusher write them though nobody waits.
const kickSize = 4 << 20

// Append gives updates consecutive stamps and returns the last one; the i-th of n updates has the
// stamp returned − (n − 1 − i). The updates will be written as a whole or not at all. Append does
// no I/O, so the caller may hold its own lock over Append and the change of its memory: both then
// happen in the same order. The updates are copied. Without updates Append returns Last.
//
// Updates with an Origin get stamps greater than the stamps that they had there.
func (l *Log) Append(ups []Update) (Stamp, error) { return l.AppendReplicated(ups, nil) }

// AppendReplicated is Append for the updates of another server, together with what is to be
// remembered about that server; f may be nil, and there may be no updates. The position record with
// f comes right before the updates: with n updates its stamp is the one returned − n.
func (l *Log) AppendReplicated(ups []Update, f *Position) (Stamp, error) {
	size, err := encodedSize(ups)
	if err != nil {
		return 0, err
	}
	msg, newest, err := encodePosition(ups, f)
	if err != nil {
		return 0, err
	}
	now := StampAt(l.opts.Now())
	l.mu.Lock()
	if err := l.usableLocked(); err != nil {
		l.mu.Unlock()
		return 0, err
	}
	l.past = max(l.past, newest)
	p := &l.pending
	refer := referred(ups)
	if refer > 0 {
		p.cut(l.last, l.note)
	}
	p.referTo += refer
	p.buf = slices.Grow(p.buf, size-refer+len(msg)+frameSize+commitSize)
	if p.count == 0 {
		p.first = max(l.last, l.past, now-1) + 1
	}
	if msg != nil {
		l.stamps.next(now)
		p.addNote(l.last, msg)
		size += frameSize + len(msg)
		if f != nil {
			l.note = note{bytes.Clone(f.State), l.last}
		}
	}
	for i := range ups {
		l.stamps.next(now)
		p.add(l.last, &ups[i])
	}
	if n := len(ups); n > 0 {
		l.update = made{l.last, ups[n-1].SID}
	}
	l.bytes += int64(size)
	last, kick := l.last, len(p.buf)+p.referTo >= kickSize && l.queue.phase == idle
	if refer > 0 {
		p.cut(l.last, l.note)
	}
	l.mu.Unlock()
	if kick {
		l.flush.kick()
	}
	return last, nil
}

// next gives out a stamp.
func (s *stamps) next(now Stamp) { s.last = max(s.last+1, s.past+1, now) }

// encodedSize returns the size of the records of updates, or an error that says why they cannot be
// logged.
func encodedSize(ups []Update) (int, error) {
	size := 0
	for i := range ups {
		n := messageSize(&ups[i])
		if ups[i].DBID == commitDBID {
			return 0, errReservedDB
		}
		if int64(n) > maxMessage {
			return 0, errTooLarge
		}
		size += frameSize + n
	}
	return size, nil
}

// encodePosition returns the message of the position record that updates need, nil where they need
// none, and the newest stamp that they have in other logs.
func encodePosition(ups []Update, f *Position) (note []byte, newest Stamp, err error) {
	foreign := false
	for i := range ups {
		if o := &ups[i].Origin; o.Log != 0 {
			newest, foreign = max(newest, o.Stamp), true
		}
	}
	if f != nil {
		newest = max(newest, f.After)
	}
	switch {
	case newest >= maxStamp:
		return nil, 0, errStamp
	case f == nil && !foreign:
		return nil, 0, nil
	case f == nil:
		f = &Position{DBID: ups[0].DBID}
	}
	return appendPosition(nil, f, ups), newest, nil
}

// usableLocked returns an error that says why nothing can be appended. The caller holds mu.
func (l *Log) usableLocked() error {
	if l.err != nil {
		return l.err
	}
	if l.closed {
		return errClosed
	}
	return nil
}

// usable is usableLocked for callers that do not hold mu.
func (l *Log) usable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.usableLocked()
}

// TakesAhead reports whether values of a size are written ahead. A log without a limit has one
// segment for ever and takes none.
func (l *Log) TakesAhead(size int) bool { return l.opts.Limit > 0 && size >= l.opts.Ahead }
