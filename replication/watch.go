package replication

import (
	"errors"
	"io"
	"time"

	"gotycoon/ulog"
)

// Watches.
//
// A watch reads the log for a client that is no server and wants to hear of changes. It asks for
// updates behind one stamp, as a slave of the original does, and may go on at another server of the
// cluster with the newest stamp that it was told. So the rules for slaves outside of a cluster
// (outside.go) are those of watches, with two additions:
//
//   - Also without a cluster only updates that the required followers have confirmed are told: a
//     watcher acts on what it hears, as a reader does (db/owe.go). What came from a master is the
//     master's to confirm.
//   - A watch does not keep an operator from removing the log: its hold is weak, and counts its
//     files like that of a follower.

// ErrCopied refuses a watch from a stamp that is older than a copy which this server got.
var ErrCopied = errors.New("this server has no single updates behind that time stamp")

// ErrElsewhere ends a watch that this server may not feed any more: another one can.
var ErrElsewhere = errors.New("this server may not tell what follows")

// Watch hands out the updates behind a stamp. It belongs to one goroutine.
type Watch struct {
	source *Source
	reader *ulog.Reader
	hold   *ulog.Hold
	heeds  *outside
	timer  *time.Timer
	at     ulog.Stamp // everything up to here has been told, as clients are told stamps
}

// Watch begins a watch of what is newer than a stamp, or with now of what happens from now on. In
// that case the caller tells the client nothing before everything is confirmed that is there.
// required is the number of followers that the database requires, below 0 that of the server. room
// is asked before a large update is read, see ulog.Reader.OnRoom. The error is a *ulog.GapError or
// *ulog.DamageError if the log has no longer all that is newer. From the stamp 0 on the watch
// begins with what the log has.
//
// since is a stamp of this server's log: nothing up to there is told. It is for a watch of all that
// the log has; one from a later stamp on has nothing from before since if after is not below it.
func (s *Source) Watch(after ulog.Stamp, now bool, since ulog.Stamp, required int, room func(bytes int) error) (*Watch, error) {
	log := s.opts.Log
	o := &outside{source: s, begun: log.Last(), required: required}
	if s.opts.Made != nil {
		var err error
		if after > 0 && after < s.opts.Lineage().Base.At {
			return nil, ErrCopied
		}
		if o, err = s.strangerAfter(after); err != nil {
			return nil, err
		}
		o.required = required
	}
	w := &Watch{source: s, heeds: o, at: after}
	from := max(o.reads(after), since)
	if now {
		if !s.leads() { // what comes after this look is told
			w.at, _ = s.opts.Position()
			if err := log.Wait(log.Last()); err != nil {
				return nil, err
			}
		}
		from = log.End()
		w.at = max(w.at, o.promises(s.leads(), log.Promise(from)))
	}
	w.hold = log.Hold(ulog.Holder{Kind: ulog.Follower, What: "a client that watches", Weak: true, Most: s.opts.Most}, from)
	var err error
	if w.reader, err = log.NewReader(from); err != nil {
		w.hold.Release()
		return nil, err
	}
	if after == 0 {
		w.reader.SkipGap()
	}
	if err := w.reader.Lost(); err != nil {
		w.end()
		return nil, err
	}
	w.reader.OnRoom(room)
	w.timer = time.NewTimer(time.Hour)
	return w, nil
}

// leads reports whether the stamps of this server's own log are those that clients are told.
func (s *Source) leads() bool { return s.opts.Term == nil || s.opts.Term() > 0 }

// At returns up to where everything has been told, or was there when the watch began.
func (w *Watch) At() ulog.Stamp { return w.at }

// Each calls f for the updates that may be told now, to the end of the log, and moves on the stamp
// of At. It returns the error of f, or why there is nothing to come.
//
// As in stream.run the stamp is promised before the log is read.
func (w *Watch) Each(f func(ulog.Entry) error) error {
	leads, promised := w.source.leads(), w.source.opts.Log.Promise(w.source.opts.Log.End())
	for {
		e, err := w.heeds.next(w.reader)
		switch {
		case errors.Is(err, io.EOF):
			w.moveOn(max(w.at, w.heeds.promises(leads, promised)))
			return nil
		case errors.Is(err, errEnded):
			return ErrElsewhere
		case err != nil:
			return err
		}
		w.moveOn(max(w.at, e.Stamp))
		if err := f(e); err != nil {
			return err
		}
	}
}

// moveOn notes that everything up to a stamp has been told. The hold has a stamp of this log, which
// is never below that of the primary's.
func (w *Watch) moveOn(at ulog.Stamp) {
	w.at = at
	w.hold.Advance(at)
}

// Stopping reports whether the server stops, which ends all watches.
func (w *Watch) Stopping() bool {
	select {
	case <-w.source.opts.Done:
		return true
	default:
		return false
	}
}

// Wait returns when there may be more, when the server stops, or after a time.
func (w *Watch) Wait(limit time.Duration) error {
	more, end, err := w.more()
	if err != nil {
		return err
	}
	defer end()
	w.timer.Reset(limit)
	select {
	case <-more:
	case <-w.timer.C:
	case <-w.source.opts.Done:
	}
	return nil
}

// more returns a channel that is closed when there is more.
func (w *Watch) more() (more <-chan struct{}, end func(), err error) {
	if w.heeds.unconfirmed() {
		more, end = w.source.opts.Quorum.reach(w.heeds.held.Stamp, w.heeds.required)
		return more, end, nil
	}
	more, err = w.reader.More()
	if more == nil && err == nil { // it has come meanwhile
		come := make(chan struct{})
		close(come)
		more = come
	}
	return more, func() {}, err
}

// Behind returns how many updates the log has that have not been read, once all had been read.
func (w *Watch) Behind() (updates uint64, known bool) {
	n, known := w.reader.Delivered()
	return max(w.source.opts.Log.Updates(), n) - n, known
}

// Close ends the watch.
func (w *Watch) Close() {
	w.timer.Stop()
	w.end()
}

func (w *Watch) end() {
	_ = w.reader.Close() // it has only read
	w.hold.Release()
}
