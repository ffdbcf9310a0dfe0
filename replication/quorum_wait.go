package replication

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/internal/words"
	"gotycoon/ulog"
)

// What becomes of updates while not enough followers are there.
//
// An update that was appended waits for at most the timeout. After that its client is told that the
// update is stored here and not confirmed, which is no success: a failover may lose the update. The
// followers that have not acknowledged it are late, and do not count as there until they
// acknowledge again.
//
// Refuse (the default): when fewer followers have been there for the timeout, updates are refused
// before they are appended (Admits). So nothing grows here that a failover would take away.
//
// Degrade: the first timeout, or the first update after followers have been missing for the
// timeout, ends the waits of its level. From then on updates are answered when they are safe here,
// until enough followers are there again. Both moments are in the log. A client that has asked for
// a number itself is not answered without the followers: it would take the answer for a promise.

// errLate ends a wait whose time is over.
var errLate = errors.New("the followers have not acknowledged in time")

// WaitConfirmed implements ulog.Confirmer.
func (q *Quorum) WaitConfirmed(at ulog.Stamp, usual, asked int) error {
	if f := q.fence.Load(); f != nil {
		return *f
	}
	if usual = min(usual, MaxReplicas); usual > 0 {
		if err := q.await(usual, at, q.opts.Timeout, q.opts.Degrade); err != nil {
			return q.unconfirmed(usual, err)
		}
	}
	if asked == 0 {
		return nil
	}
	if asked > MaxReplicas {
		return &dberr.Error{Code: dberr.SystemError, Message: "stored here, not confirmed: " + tooMany(asked), Err: dberr.ErrUnconfirmed}
	}
	return q.unconfirmed(asked, q.await(asked, at, q.opts.Timeout, false))
}

// unconfirmed returns the error of a client whose wait has ended with err.
func (q *Quorum) unconfirmed(n int, err error) error {
	if !errors.Is(err, errLate) {
		return err
	}
	q.figures.unconfirmed.Add(1)
	q.mu.Lock()
	defer q.unlock()
	text := fmt.Sprintf("stored here, not confirmed by %s within %v: %s", words.Followers(n), q.opts.Timeout, q.missing(n, time.Now()))
	return &dberr.Error{Code: dberr.SystemError, Message: text, Err: dberr.ErrUnconfirmed}
}

// await waits until n followers have acknowledged a stamp, or returns errLate, or the error of a
// fence. A soft wait ends when its level is degraded, and degrades it when its time is over.
func (q *Quorum) await(n int, at ulog.Stamp, limit time.Duration, soft bool) error {
	l := &q.levels[n]
	if ulog.Stamp(l.confirmed.Load()) >= at {
		return nil
	}
	w := q.waits.Get().(*wait)
	defer q.waits.Put(w)
	w.n, w.at, w.soft = n, at, soft
	if done, err := q.enter(w); done {
		return err
	}
	q.figures.waiting.Add(1)
	defer q.figures.waiting.Add(-1)
	w.timer.Reset(limit)
	select {
	case err := <-w.ended:
		w.timer.Stop()
		return err
	case <-w.timer.C:
	}
	return q.timedOut(w, limit)
}

// enter puts a wait into its level, and has the followers asked for its stamp. It reports whether
// there is nothing to wait for.
func (q *Quorum) enter(w *wait) (done bool, err error) {
	q.mu.Lock()
	defer q.unlock()
	l := &q.levels[w.n]
	switch f := q.fence.Load(); {
	case f != nil:
		return true, *f
	case ulog.Stamp(l.confirmed.Load()) >= w.at:
		return true, nil
	case w.soft && l.degraded.Load():
		q.figures.degraded.Add(1)
		return true, nil
	}
	i := len(l.waits)
	for i > 0 && l.waits[i-1].at > w.at {
		i--
	}
	l.waits = slices.Insert(l.waits, i, w)
	q.askFor(w.at)
	return false, nil
}

// askFor has the followers asked for a stamp. The caller holds mu.
func (q *Quorum) askFor(at ulog.Stamp) {
	if uint64(at) > q.wanted.Load() {
		q.wanted.Store(uint64(at))
	}
	for _, m := range q.members {
		for _, v := range m.votes {
			v.wake(at)
		}
	}
}

// busy reports whether anybody waits for followers, or is about to where soon is true.
func (q *Quorum) busy(soon bool) bool {
	return q.figures.waiting.Load() > 0 || soon && q.Required() > 0
}

// EndWaits ends all waits under way as if their time was over: the server stops, and no follower is
// left.
func (q *Quorum) EndWaits() {
	q.mu.Lock()
	defer q.unlock()
	for n := range q.levels {
		l := &q.levels[n]
		for _, w := range l.waits {
			w.end(errLate)
		}
		l.waits = nil
	}
}

// timedOut ends a wait whose time is over. Where an update has waited for the whole timeout, the
// followers that have not acknowledged it are late.
func (q *Quorum) timedOut(w *wait, limit time.Duration) error {
	q.mu.Lock()
	defer q.unlock()
	l := &q.levels[w.n]
	i := slices.Index(l.waits, w)
	if i < 0 { // it was ended just now
		return <-w.ended
	}
	l.waits = slices.Delete(l.waits, i, i+1)
	if limit < q.opts.Timeout {
		return errLate
	}
	now := time.Now()
	for _, m := range q.members {
		for _, v := range m.votes {
			v.late = v.late || v.acked < w.at
		}
	}
	q.look(now.Add(-limit))
	if !w.soft {
		return errLate
	}
	q.figures.degraded.Add(1)
	q.degrade(w.n, now)
	return nil
}

// degrade has answers of a level not wait any more. The caller holds mu.
func (q *Quorum) degrade(n int, now time.Time) {
	l := &q.levels[n]
	if l.degraded.Swap(true) {
		return
	}
	line := fmt.Sprintf("updates are answered without waiting for %s, as -sync-degrade says: a failover may lose them: %s", words.Followers(n), q.missing(n, now))
	q.said = append(q.said, func() { q.opts.Logger.Error(line) })
	l.waits = slices.DeleteFunc(l.waits, func(w *wait) bool {
		if w.soft {
			q.figures.degraded.Add(1)
			w.end(nil)
		}
		return w.soft
	})
}

// Admits implements ulog.Confirmer.
func (q *Quorum) Admits(usual, asked int) error {
	if f := q.fence.Load(); f != nil {
		return refused((*f).Error())
	}
	present := int(q.present.Load())
	if present >= max(usual, asked) {
		return nil
	}
	if asked > MaxReplicas {
		return refused(tooMany(asked))
	}
	usual = min(usual, MaxReplicas)
	if asked == 0 && q.levels[usual].degraded.Load() {
		return nil
	}
	q.mu.Lock()
	defer q.unlock()
	now := time.Now()
	if q.absent(usual, now) {
		if !q.opts.Degrade {
			return q.refuse(usual, now)
		}
		q.degrade(usual, now)
	}
	if q.absent(asked, now) {
		return q.refuse(asked, now)
	}
	return nil
}

// absent reports whether fewer than n followers have been there for the timeout. The caller holds
// mu.
func (q *Quorum) absent(n int, now time.Time) bool {
	since := q.levels[n].since
	return n > 0 && !since.IsZero() && now.Sub(since) >= q.opts.Timeout
}

// refuse counts an update that is refused. The caller holds mu.
func (q *Quorum) refuse(n int, now time.Time) error {
	q.figures.refused.Add(1)
	return refused(words.Followers(n) + " must have it before it is answered: " + q.missing(n, now))
}

func refused(why string) error {
	return &dberr.Error{Code: dberr.SystemError, Message: "the update is refused, nothing has changed: " + why, Err: dberr.ErrFewReplicas}
}

func tooMany(n int) string {
	return fmt.Sprintf("%d followers are asked for, and at most %d can be", n, MaxReplicas)
}
