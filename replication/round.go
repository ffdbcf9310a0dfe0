package replication

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/ulog"
)

const (
	// retryFirst is the pause before a master is called again, retryMost what it grows to. A quarter more or less is by chance, so that
	// the followers of a master that was restarted do not all come at once.
	retryFirst = 250 * time.Millisecond
	retryMost  = 5 * time.Second
	// retryRefused is the pause when this server cannot store what comes, or must not go on.
	retryRefused = 10 * time.Second
	// connectTimeout limits connecting.
	connectTimeout = 10 * time.Second
	// firstTimeout is how long a master may take to find where in its log it has to begin.
	firstTimeout = time.Minute
	// silenceTimeout is after which time without a message a master is given up: it sends heartbeats all the time.
	silenceTimeout = 5 * time.Second
	// saveEvery is how far the RTS file may be behind while updates come, idleEvery while none do.
	saveEvery = time.Second
	idleEvery = 10 * time.Second
)

// errAgain ends a connection that is to be followed by another at once.
var errAgain = errors.New("the connection is begun anew")

// errGap ends a connection to a master whose log does not reach back far enough.
var errGap = errors.New("the master has not kept the updates that this server needs")

// errRefused is what a master says that cannot or will not be one.
var errRefused = errors.New("the master refuses to be followed: it has no update log (-ulog), or its access file (-access) gives this server no " +
	"right to replicate, or it serves only its own machine; its log says why")

// run does one round after the other until the context ends.
func (f *Follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		f.round(ctx)
	}
}

// round follows one master until the connection ends, and pauses. Tune ends a round early.
func (f *Follower) round(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := f.begin(cancel)
	f.status.set(f.idleState())
	if m.Host == "" {
		f.tellServices(Services.Alone)
		<-ctx.Done()
		f.attempts = 0
		return
	}
	pause := f.follow(ctx, m)
	sleep(ctx, pause)
	if ctx.Err() != nil {
		f.attempts = 0
	}
}

// idleState is the state without a connection.
func (f *Follower) idleState() State {
	if f.Master().Host == "" {
		return None
	}
	return Connecting
}

// begin takes over what Tune has set. From now on Tune calls retuned.
func (f *Follower) begin(retuned context.CancelFunc) Master {
	f.mu.Lock()
	m, from := f.master, f.from
	f.from, f.retuned = nil, retuned
	tuned, recopy := f.tuned, f.tuned && f.recopy && m.Host != ""
	f.tuned, f.recopy = false, f.recopy && !tuned
	f.mu.Unlock()
	if tuned { // again: the connection to the former master has ended only now
		f.status.retune(f.idleState())
	}
	if from != nil {
		f.place = place{position: *from, rts: f.place.rts, dbs: f.place.dbs, services: f.place.services}
		if f.opts.Services != nil { // what is skipped may be another server's claim
			f.place.copyAgain(db.ServicesIndex)
		}
		f.status.position.Store(uint64(*from))
		f.save()
	}
	if recopy {
		f.beginAmends()
	}
	return m
}

// tellDeferred writes about a master that cannot be followed, once for each, and about one that refuses, which somebody has to mend.
func (f *Follower) tellDeferred(m Master, err error) {
	refused := errors.Is(err, errRefused)
	if f.deferred != m.address() {
		f.deferred = m.address()
		f.system("replication was deferred: host=%s port=%d", m.Host, m.Port)
		if !refused {
			f.opts.Logger.Info(fmt.Sprintf("the master cannot be reached: %v", err))
		}
	}
	if refused && !f.refused {
		f.opts.Logger.Error(fmt.Sprintf("%s: %v", m.address(), err))
	}
	f.refused = refused
}

// follow pulls from a master until the connection ends, and returns how long to wait before the next attempt.
func (f *Follower) follow(ctx context.Context, m Master) time.Duration {
	p, err := f.connect(ctx, m)
	if err != nil {
		if ctx.Err() != nil {
			return 0
		}
		f.status.explain(Connecting, err.Error())
		f.tellDeferred(m, err)
		return f.backOff()
	}
	f.deferred, f.refused = "", false
	f.system("replication started: host=%s port=%d rts=%d", m.Host, m.Port, f.place.position)
	err = p.run(ctx)
	p.close()
	if p.good {
		f.attempts = 0
	}
	f.system("replication finished: host=%s port=%d", m.Host, m.Port)
	f.save()
	if errors.Is(err, errCopy) {
		err = f.copyDatabases(ctx, m, *p.hello)
	}
	return f.ended(ctx, err)
}

// ended says what comes after a connection that has ended.
func (f *Follower) ended(ctx context.Context, err error) time.Duration {
	e, refused := errors.AsType[*dberr.Error](err)
	switch {
	case errors.Is(err, errAgain) || ctx.Err() != nil:
		return 0
	case errors.Is(err, errGap):
		f.opts.Logger.Error(err.Error())
		f.status.explain(Gap, err.Error())
		return retryRefused
	case errors.Is(err, errParted):
		f.opts.Logger.Error(err.Error())
		f.status.explain(Parted, err.Error())
		return retryRefused
	case errors.Is(err, errOtherKind):
		f.opts.Logger.Error(err.Error())
		f.status.explain(Stalled, err.Error())
		return retryRefused
	case refused:
		f.opts.Logger.Error(fmt.Sprintf("replication waits, since updates cannot be stored: %v", e))
		f.status.explain(Stalled, e.Error())
		return retryRefused
	}
	f.status.explain(Connecting, err.Error())
	f.opts.Logger.Info(fmt.Sprintf("the connection to the master has ended: %v", err))
	return f.backOff()
}

// backOff returns the pause after an attempt, which grows while they are in vain.
func (f *Follower) backOff() time.Duration {
	pause := min(retryFirst<<min(f.attempts, 10), retryMost)
	f.attempts++
	return pause*3/4 + rand.N(pause/2)
}

// advance moves the position on and sees to it that the RTS file is not far behind.
func (f *Follower) advance(to ulog.Stamp) {
	f.place.advance(to)
	f.status.position.Store(uint64(f.place.position))
	pause := idleEvery
	if f.moved || !f.remembers() {
		pause = saveEvery
	}
	if time.Since(f.saved) >= pause && f.pollSaving() {
		f.beginSaving()
	}
}

// remembers tells whether there is a place for what goes with the data.
func (f *Follower) remembers() bool {
	for _, i := range f.dbs {
		if f.opts.Catalog.Numbered(int(i)).Remembers() {
			return true
		}
	}
	return false
}

// save puts the position into the RTS file, and returns when it is there.
func (f *Follower) save() {
	f.awaitSaving()
	f.beginSaving()
	f.awaitSaving()
}

// beginSaving has the position put into the RTS file by a goroutine that awaitSaving waits for, after the updates up to it are on the disk, and
// with them that it will be there: a crash leaves what it was or what it will be, and recall knows both. Updates do not wait for the disk.
func (f *Follower) beginSaving() {
	f.saved, f.moved = time.Now(), false
	at, before := f.place.position, f.place.rts
	f.place.rts = [2]ulog.Stamp{at, f.rts.saved}
	state := f.place.encode()
	if at == f.rts.saved && string(state) == string(f.good) {
		return
	}
	if err := f.opts.Catalog.Remember(state); err != nil {
		f.place.rts = before
		f.failedToSave(err)
		return
	}
	f.good = state
	f.saving = make(chan error, 1)
	f.done.Go(func() {
		err := f.opts.Catalog.SyncLogs()
		if err == nil {
			err = f.rts.save(at)
		}
		f.saving <- err
	})
}

// awaitSaving waits for what beginSaving has begun.
func (f *Follower) awaitSaving() {
	if f.saving != nil {
		f.endSaving(<-f.saving)
	}
}

// pollSaving tells whether nothing is being saved.
func (f *Follower) pollSaving() bool {
	if f.saving == nil {
		return true
	}
	select {
	case err := <-f.saving:
		f.endSaving(err)
		return true
	default:
		return false
	}
}

func (f *Follower) endSaving(err error) {
	f.saving = nil
	if err != nil {
		f.failedToSave(err)
	}
}

func (f *Follower) failedToSave(err error) {
	f.opts.Logger.Error(fmt.Sprintf("writing the RTS file: %v", err))
}
