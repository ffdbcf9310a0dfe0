package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Lock is a lock that this client holds. It has a connection of its own, over which it is renewed.
//
// It is held until Release, or until Lost is closed. The client must never believe longer than the
// server that it holds the lock. So it counts the TTL from before it asked for the latest renewal,
// while the server counts from when the request arrived:
//
//	client  asks at 10.0       reply at 10.4          lost at 40.0 without a further reply
//	server          arrives at 10.2                   expires at 40.2
//
// A process that stands still (it is suspended, or its machine is) misses that moment. So the
// resource that the lock protects should refuse a Fence that is lower than one it has seen.
//
// Its goroutine is keep; Release ends it and waits for it.
type Lock struct {
	key   string
	ttl   time.Duration // whole seconds
	fence uint64
	cn    *conn
	line  strings.Builder // the beginning of a line that has not arrived completely

	valid time.Time // the server keeps the lock at least until then; belongs to keep

	mu        sync.Mutex // protects releasing; held while a read deadline is set
	releasing bool

	lost  chan struct{} // closed by keep when the lock is lost
	ended chan struct{} // closed by keep when it ends
	err   error         // why the lock is lost; set before lost is closed
}

func newLock(cn *conn, key string, ttl time.Duration) *Lock {
	if ttl == 0 {
		ttl = DefaultLockTTL
	}
	return &Lock{key: key, ttl: max(time.Second, ttl.Truncate(time.Second)), cn: cn,
		lost: make(chan struct{}), ended: make(chan struct{})}
}

// Key returns the key.
func (l *Lock) Key() string { return l.key }

// Fence returns the fencing token. It is greater than the tokens of all earlier holders.
func (l *Lock) Fence() uint64 { return l.fence }

// Lost returns a channel that is closed when the lock is lost. Release does not close it.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// Err returns why the lock is lost, as an ErrLockLost, or nil if it is not lost.
func (l *Lock) Err() error {
	select {
	case <-l.lost:
		return l.err
	default:
		return nil
	}
}

// acquire asks for the lock and waits until it is granted. Then it renews the lock, since it does
// not know when the server granted it: the TTL is counted from the renewal.
func (l *Lock) acquire(o LockOptions) error {
	if err := checkLockKey(l.key); err != nil {
		return err
	}
	wait := int64(-1)
	if o.Wait >= 0 {
		wait = int64(wholeSeconds(o.Wait) / time.Second)
	}
	if err := l.send(fmt.Sprintf("lock-fenced %s %d %d %d", l.key, max(1, o.Max), wait, l.ttl/time.Second)); err != nil {
		return err
	}
	words, err := readLockLine(l.cn)
	switch {
	case err != nil:
		return err
	case words[0] == "TIMEOUT":
		return ErrLockBusy
	case words[0] != "GRANTED" || len(words) != 6:
		return lockReplyError(words)
	}
	if l.fence, err = strconv.ParseUint(words[5], 10, 64); err != nil {
		return lockReplyError(words)
	}
	if seconds, err := strconv.Atoi(words[4]); err == nil { // the server may have a lower limit
		l.ttl = time.Duration(seconds) * time.Second
	}
	return l.confirm()
}

// confirm renews the lock and waits for the reply.
func (l *Lock) confirm() error {
	asked := time.Now()
	if err := l.send("renew " + l.key); err != nil {
		return err
	}
	words, err := readLockLine(l.cn)
	switch {
	case err != nil:
		return err
	case words[0] != "RENEWED":
		return fmt.Errorf("%w: %s", ErrLockLost, strings.Join(words, " "))
	}
	l.valid = asked.Add(l.ttl)
	l.cn.broken = false
	return nil
}

func (l *Lock) send(line string) error {
	l.cn.out = append(l.cn.out[:0], line+"\n"...)
	return l.cn.send()
}

// keep renews the lock until it is released or lost.
func (l *Lock) keep() {
	defer close(l.ended)
	err := l.renew()
	if errors.Is(err, errReleasing) {
		return
	}
	l.err = fmt.Errorf("%w: %w", ErrLockLost, err)
	_ = l.cn.Close() // nothing more will be sent
	close(l.lost)
}

// errReleasing ends renew without a loss of the lock.
var errReleasing = errors.New("released")

var errUnconfirmed = errors.New("the server has not confirmed it in time")

// renew renews the lock after each third of its TTL. It listens all the time, because the server
// says at once when the lock is lost.
func (l *Lock) renew() error {
	next := l.valid.Add(-l.ttl * 2 / 3)
	var asked time.Time // zero: no renewal is unanswered
	for {
		until := next
		if !asked.IsZero() {
			until = l.valid
		}
		word, err := l.listen(until)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && asked.IsZero():
			asked = time.Now()
			if err := l.renewOnce(); err != nil {
				return err
			}
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errUnconfirmed
		case err != nil:
			return err
		case word == "RENEWED":
			l.valid = asked.Add(l.ttl)
			next, asked = asked.Add(l.ttl/3), time.Time{}
		default:
			return errors.New("the server says " + word)
		}
		if time.Now().After(l.valid) {
			return errUnconfirmed
		}
	}
}

func (l *Lock) renewOnce() error {
	if err := l.cn.SetWriteDeadline(l.valid); err != nil {
		return err
	}
	return l.send("renew " + l.key)
}

// listen returns the first word of the next line, if it arrives before the moment until.
func (l *Lock) listen(until time.Time) (string, error) {
	if err := l.setDeadline(until); err != nil {
		return "", err
	}
	part, err := l.cn.in.ReadString('\n')
	l.line.WriteString(part)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.releasing {
			return "", errReleasing
		}
		return "", err
	}
	word, _, _ := strings.Cut(l.line.String(), " ")
	l.line.Reset()
	return strings.TrimSuffix(word, "\n"), nil
}

// setDeadline sets the read deadline, unless Release has set one that is over.
func (l *Lock) setDeadline(until time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.releasing {
		return errReleasing
	}
	return l.cn.SetReadDeadline(until)
}

// Release gives the lock back and closes the connection. It returns an ErrLockLost if the lock was
// lost before. It is called once, also for a lost lock.
func (l *Lock) Release(ctx context.Context) error {
	l.mu.Lock()
	l.releasing = true
	_ = l.cn.SetReadDeadline(time.Unix(1, 0)) // fails if the connection is closed
	l.mu.Unlock()
	<-l.ended
	defer l.cn.Close()
	if err := l.Err(); err != nil {
		return err
	}
	if err := l.cn.SetDeadline(time.Time{}); err != nil {
		return networkError(err)
	}
	return l.cn.during(ctx, l.release)
}

// release sends the release, and a status request to find the end of the replies. Replies to
// renewals may come first. The last RELEASED or NOT_RELEASED before the status counts: a lock that
// has expired makes the server say RELEASED too, but then NOT_RELEASED follows.
func (l *Lock) release(cn *conn) error {
	if err := l.send("release " + l.key + "\nstatus " + l.key); err != nil {
		return err
	}
	for last := ""; ; {
		line, err := cn.in.ReadString('\n')
		if err != nil {
			return networkError(err)
		}
		l.line.WriteString(line)
		word, _, _ := strings.Cut(l.line.String(), " ")
		l.line.Reset()
		switch word {
		case "RELEASED", "NOT_RELEASED":
			last = word
		case "STATUS":
			if last == "RELEASED" {
				return nil
			}
			return ErrLockLost
		}
	}
}
