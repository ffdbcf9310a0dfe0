package replication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"gotycoon/client"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/internal/rescue"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

const (
	// retryFirst is the first pause between two connections in vain; retryMost is the longest.
	// Pauses vary at random by a quarter, so that the followers of a restarted master do not all
	// come at the same moment.
	retryFirst = 250 * time.Millisecond
	retryMost  = 5 * time.Second
	// retryElected is the first pause where a primary was elected and has not begun its term yet,
	// which takes it some writes to its disk. Clients wait for it and this server.
	retryElected = 10 * time.Millisecond
	// fullFirst and fullMost are the same when this server cannot store updates: its disk is full.
	fullFirst = 500 * time.Millisecond
	fullMost  = 10 * time.Second
	// retryRefused is the pause when this server must not go on: an operator has to do something.
	retryRefused = 10 * time.Second
	// silenceTimeout is the default of FollowerOptions.Silence.
	silenceTimeout = 5 * time.Second
)

// OpenFollower opens the RTS file, creating it if need be, and finds out where the databases are.
// Nothing is pulled before Start.
func OpenFollower(o FollowerOptions) (*Follower, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Silence <= 0 {
		o.Silence = silenceTimeout
	}
	o.Master.Interval = clampInterval(o.Master.Interval)
	rts, err := openRTS(vfs.OS{}, o.RTS)
	if err != nil {
		return nil, fmt.Errorf("open the RTS file: %w", err)
	}
	f := &Follower{opts: o, dbs: o.databases(), rts: rts, master: o.Master}
	if log := o.Catalog.Log(); log != nil {
		f.ownLog = ulog.LogKey(log.ID())
	}
	f.place = f.recall(rts.saved)
	f.remember(f.place.encode())
	f.rest.at = f.place.standing()
	f.recallPartial()
	f.status.position.Store(uint64(f.place.position))
	f.status.set(f.idleState())
	return f, nil
}

// Start begins to pull. Further calls do nothing.
func (f *Follower) Start() {
	if f.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.done.Go(func() { _ = rescue.Do(f.opts.Logger, "following the master", func() { f.run(ctx) }) })
}

// Close ends the connection to the master and returns when the position is saved. It is called
// once, before the databases are closed, and not while Start runs.
func (f *Follower) Close() error {
	if f.stop != nil {
		f.stop()
		f.done.Wait()
	}
	return f.rts.close()
}

// run executes rounds until the context ends.
func (f *Follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		f.round(ctx)
	}
}

// round has one connection to the master, and the pause after it. Tune ends a round early.
func (f *Follower) round(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := f.begin(cancel)
	f.status.set(f.idleState())
	if m.Host == "" {
		f.tellServices(Services.Alone)
		f.resting()
		<-ctx.Done()
		f.attempts, f.refusals, f.early = 0, 0, 0
		return
	}
	pause := f.follow(ctx, m)
	sleep(ctx, pause)
	if ctx.Err() != nil {
		f.attempts, f.refusals, f.early = 0, 0, 0
	}
}

// idleState is the state without a connection.
func (f *Follower) idleState() State {
	if f.Master().Host == "" {
		return None
	}
	return Connecting
}

// begin takes over what Tune has set, for a new round. From now on Tune calls retuned.
func (f *Follower) begin(retuned context.CancelFunc) Master {
	f.mu.Lock()
	m, from := f.master, f.from
	f.from, f.retuned = nil, retuned
	f.rest.begun = f.rest.ordered
	elected := f.elected
	f.elected = nil
	tuned, recopy := f.tuned, f.tuned && f.recopy && m.Host != ""
	f.tuned, f.recopy = false, f.recopy && !tuned
	f.mu.Unlock()
	if tuned { // Tune did this too, but the former master was still followed and may have undone it
		f.status.retune(f.idleState())
		f.lacking = time.Time{}
	}
	if tuned {
		f.succeed(elected)
	}
	if from != nil {
		f.beginAt(*from)
	}
	if recopy {
		f.place.amends = amendsCopies
		f.place.copyAll(slices.Clone(f.dbs))
		f.tellPartial()
		f.save()
	}
	return m
}

// tellDeferred logs that a master cannot be followed: once for each address, and once more as an
// error if the master refuses, because only an operator can mend that.
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

// follow pulls from a master until the connection ends. It returns the pause before the next
// connection.
func (f *Follower) follow(ctx context.Context, m Master) time.Duration {
	p, err := f.connect(ctx, m)
	if err != nil {
		if ctx.Err() != nil {
			return 0
		}
		f.status.explain(Connecting, err.Error())
		f.tellDeferred(m, err)
		return backOff(&f.attempts, retryFirst, retryMost)
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

// ended tells why a connection has ended. It returns the pause before the next connection.
func (f *Follower) ended(ctx context.Context, err error) time.Duration {
	e, refused := errors.AsType[*dberr.Error](err)
	switch {
	case errors.Is(err, errAgain) || ctx.Err() != nil:
		return 0
	case errors.Is(err, errGap):
		f.opts.Logger.Error(err.Error())
		f.status.explain(Gap, err.Error())
		return retryRefused
	case errors.Is(err, errParted) || errors.Is(err, errStranger):
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
		return backOff(&f.refusals, fullFirst, fullMost)
	}
	f.status.explain(Connecting, err.Error())
	f.opts.Logger.Info(fmt.Sprintf("the connection to the master has ended: %v", err))
	if errors.Is(err, errTerm) {
		return backOff(&f.early, retryElected, retryMost)
	}
	return backOff(&f.attempts, retryFirst, retryMost)
}

// backOff counts an attempt in vain and returns the pause after it. Each pause is about twice the
// previous one.
func backOff(attempts *int, first, most time.Duration) time.Duration {
	pause := min(first<<min(*attempts, 10), most)
	*attempts++
	return pause*3/4 + rand.N(pause/2)
}

// copyDatabases fetches copies of the databases that are to be copied. Afterwards the log is
// followed from the instant of the first copy.
func (f *Follower) copyDatabases(ctx context.Context, m Master, h frame.Hello) error {
	f.status.set(Copying)
	shared := f.shared(&h)
	whole := len(f.place.parts) >= len(shared) && !slices.ContainsFunc(f.place.parts, func(p part) bool { return p.copied || p.at > 0 })
	for {
		part := f.place.incomplete()
		if part == nil {
			break
		}
		if err := f.copyDatabase(ctx, m, h, part); err != nil {
			return err
		}
	}
	if err := f.confirmTerm(ctx, m); err != nil {
		return err
	}
	f.endCopies(&h, whole)
	f.save()
	// Whoever sees the position may make this server the master of others, whom Past tells of what
	// was received. Before save it would tell of the time before the copies.
	f.status.position.Store(uint64(f.place.position))
	return errAgain
}

// copyDatabase fetches a copy of one database, or goes on with a copy that was interrupted.
func (f *Follower) copyDatabase(ctx context.Context, m Master, h frame.Hello, part *part) error {
	if part.at < ulog.Stamp(h.First) && part.at > 0 {
		part.at, part.key = 0, nil // the updates since the instant of the copy are gone
	}
	d := f.opts.Catalog.Numbered(int(part.db))
	c := client.New(m.address(), client.Options{Timeout: firstTimeout, Dial: f.dialClient})
	defer c.Close()
	cp := copier{f: f, db: d, part: part, hello: h, master: m, told: time.Now(), pending: db.Pending{Local: true}}
	f.opts.Logger.Info(fmt.Sprintf("fetching a copy of the master's database %d for %s", part.db, d.Info().Path))
	o := client.CopyOptions{Limit: f.opts.CopyLimit, From: part.key, Begin: cp.begin, Visit: cp.visit, Newest: h.Newest}
	// In the services' database the newer update does not always win.
	if d.Info().KeepsVersions && part.db != db.ServicesIndex {
		o.Version = cp.visitVersion
	}
	err := c.CopyForFollower(ctx, f.opts.SID, part.db, o)
	if err == nil {
		err = cp.end()
	}
	if e, ok := errors.AsType[*client.Error](err); ok && e.Code == client.Internal && part.key != nil {
		part.at, part.key = 0, nil // the master's database may be of another kind now
	}
	if err != nil {
		f.save()
		f.tellFailed(ctx, part.db, err)
		return fmt.Errorf("copy of database %d: %w", part.db, err)
	}
	return nil
}

// tellFailed logs why a copy has ended early, unless the log says so already.
func (f *Follower) tellFailed(ctx context.Context, db uint16, err error) {
	if text := err.Error(); ctx.Err() == nil && text != f.failed {
		f.failed = text
		f.opts.Logger.Warn(fmt.Sprintf("the copy of database %d is tried again, since it has ended early: %v", db, err))
	}
}
