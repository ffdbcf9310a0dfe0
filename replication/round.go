package replication

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gotycoon/db"
	"gotycoon/ulog"
)

const (
	// retryAfter is the pause before a master is called again. Up to a quarter is added by chance, so that the followers of
	// a master that was restarted do not all come at once.
	retryAfter = time.Second
	// retryRefused is the pause when this server cannot store what comes.
	retryRefused = 10 * time.Second
	// netTimeout limits connecting, and each wait for bytes or send space. A master sends heartbeats all the time.
	netTimeout = time.Minute
	// saveEvery is how far the RTS file may be behind while updates come.
	saveEvery = time.Second
)

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
	if m.Host == "" {
		<-ctx.Done()
		return
	}
	sleep(ctx, f.follow(ctx, m))
}

// begin takes over what Tune has set. From now on Tune calls retuned.
func (f *Follower) begin(retuned context.CancelFunc) Master {
	f.mu.Lock()
	m, from := f.master, f.from
	f.from, f.retuned = nil, retuned
	f.mu.Unlock()
	if from != nil {
		f.position.Store(uint64(*from))
		f.save()
	}
	return m
}

// follow pulls from a master until the connection ends, and returns how long to wait before the next attempt.
func (f *Follower) follow(ctx context.Context, m Master) time.Duration {
	pause := retryAfter + rand.N(retryAfter/4)
	p, err := f.connect(ctx, m)
	if err != nil {
		if f.deferred != m.address() && ctx.Err() == nil {
			f.deferred = m.address()
			f.system("replication was deferred: host=%s port=%d", m.Host, m.Port)
			f.opts.Logger.Info(fmt.Sprintf("the master cannot be reached: %v", err))
		}
		return pause
	}
	f.deferred = ""
	f.system("replication started: host=%s port=%d rts=%d", m.Host, m.Port, f.position.Load())
	err = p.run(ctx)
	p.close()
	f.system("replication finished: host=%s port=%d", m.Host, m.Port)
	f.save()
	if e, ok := errors.AsType[*db.Error](err); ok {
		f.opts.Logger.Error(fmt.Sprintf("replication waits, since updates cannot be stored: %v", e))
		return retryRefused
	}
	if ctx.Err() == nil {
		f.opts.Logger.Info(fmt.Sprintf("the connection to the master has ended: %v", err))
	}
	return pause
}

// advance moves the position on and sees to it that the RTS file is not far behind.
func (f *Follower) advance(to ulog.Stamp) {
	if to > ulog.Stamp(f.position.Load()) {
		f.position.Store(uint64(to))
	}
	if time.Since(f.saved) >= saveEvery {
		f.save()
	}
}

// save puts the position into the RTS file, after the updates up to it are on the disk.
func (f *Follower) save() {
	f.saved = time.Now()
	at := ulog.Stamp(f.position.Load())
	if at == f.rts.saved {
		return
	}
	err := f.opts.Catalog.SyncLogs()
	if err == nil {
		err = f.rts.save(at)
	}
	if err != nil {
		f.opts.Logger.Error(fmt.Sprintf("writing the RTS file: %v", err))
	}
}
