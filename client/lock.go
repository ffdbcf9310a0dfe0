package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DefaultLockTTL is the default of LockOptions.TTL.
const DefaultLockTTL = 30 * time.Second

// Errors of Locks to test for with errors.Is.
var (
	ErrLockBusy = errors.New("the lock was not granted in time")
	ErrLockLost = errors.New("the lock is lost")
	ErrNoLock   = errors.New("there is no such holder or waiting request") // of Cancel
)

// Locks is a client of a lock server. Many goroutines may use it. Each call has a connection of its
// own.
type Locks struct {
	addr string
	opts Options
}

// NewLocks returns a client of the lock server at addr, HOST:PORT or HOST. Of the options it uses
// Timeout, which Acquire adds to LockOptions.Wait, TLS and Dial.
func NewLocks(addr string, o Options) *Locks {
	return &Locks{addr: withPort(addr, DefaultLockPort), opts: o}
}

// LockOptions of Acquire.
type LockOptions struct {
	// TTL is how long the server keeps the lock when it hears nothing from this client, in whole
	// seconds, at least 1. The client renews the lock as long as it can. 0 means DefaultLockTTL.
	TTL time.Duration

	// Wait is how long to wait, rounded up to whole seconds; 0 means not at all, negative for ever.
	// The end of the context ends the wait, too.
	Wait time.Duration

	Max int // how many holders are allowed at the same time; 0 means 1
}

// Acquire acquires a lock, with a fencing token. It returns ErrLockBusy if the lock is not granted
// in time.
func (l *Locks) Acquire(ctx context.Context, key string, o LockOptions) (*Lock, error) {
	asking := ctx
	if o.Wait >= 0 {
		limits := l.opts
		if limits.Timeout > 0 {
			limits.Timeout += wholeSeconds(o.Wait)
		}
		var cancel context.CancelFunc
		asking, cancel = limits.limit(ctx)
		defer cancel()
	}
	c, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	lock := newLock(c, key, o.TTL)
	if err := c.during(asking, func(*conn) error { return lock.acquire(o) }); err != nil || c.broken {
		_ = c.Close() // which releases the lock, or ends the waiting request
		if err == nil {
			err = networkError(context.Cause(asking))
		}
		return nil, err
	}
	go lock.keep()
	return lock, nil
}

// LockStatus is the state of a key.
type LockStatus struct{ Holders, Waiters int }

// Status returns the number of holders and of waiting requests of a key.
func (l *Locks) Status(ctx context.Context, key string) (LockStatus, error) {
	var s LockStatus
	err := l.call(ctx, key, "status "+key, func(words []string) (bool, error) {
		if len(words) < 3 || words[0] != "STATUS" {
			return true, lockReplyError(words)
		}
		_, err := fmt.Sscan(words[1]+" "+words[2], &s.Holders, &s.Waiters)
		return true, err
	})
	return s, err
}

// LockEntry is a holder or a waiting request of a key.
type LockEntry struct {
	Key     string
	Address string        // of the client
	Holds   bool          // it holds the lock; otherwise it waits
	Age     time.Duration // how long it has held the lock or waited
	Left    time.Duration // until it expires or gives up waiting; negative: never
	Max     int           // how many holders it allows
	Fence   uint64        // its fencing token; 0: none
}

// List returns the holders and waiting requests of a key, or of all keys if key is empty. They are
// sorted by key, holders first; holders are in the order of their grants, waiting requests in the
// order of their arrival.
func (l *Locks) List(ctx context.Context, key string) ([]LockEntry, error) {
	var list []LockEntry
	err := l.call(ctx, key, strings.TrimSpace("list "+key), func(words []string) (bool, error) {
		if words[0] == "END" {
			return true, nil
		}
		e, err := parseLockEntry(words)
		list = append(list, e)
		return false, err
	})
	return list, err
}

func parseLockEntry(words []string) (e LockEntry, err error) {
	if len(words) < 6 || words[0] != "HOLDER" && words[0] != "WAITER" {
		return e, lockReplyError(words)
	}
	e.Holds, e.Key, e.Address = words[0] == "HOLDER", words[1], words[2]
	for i, dst := range []*time.Duration{&e.Age, &e.Left} {
		seconds, err := strconv.ParseFloat(words[3+i], 64)
		if err != nil {
			return e, lockReplyError(words)
		}
		*dst = time.Duration(seconds * float64(time.Second))
	}
	if _, err := fmt.Sscan(strings.Join(words[5:], " ")+" 0", &e.Max, &e.Fence); err != nil {
		return e, lockReplyError(words)
	}
	return e, nil
}

// Cancel ends the request of the client with this address, which List shows: a waiting request
// times out, a held lock expires. It returns ErrNoLock if there is no such request.
func (l *Locks) Cancel(ctx context.Context, key, address string) error {
	return l.call(ctx, key, "cancel "+key+" "+address, func(words []string) (bool, error) {
		switch words[0] {
		case "CANCELLED":
			return true, nil
		case "NOT_CANCELLED":
			return true, ErrNoLock
		}
		return true, lockReplyError(words)
	})
}

// call sends a line and passes the lines of the reply to take, until take returns true or an error.
func (l *Locks) call(ctx context.Context, key, line string, take func(words []string) (done bool, err error)) error {
	if err := checkLockKey(key); key != "" && err != nil {
		return err
	}
	ctx, cancel := l.opts.limit(ctx)
	defer cancel()
	c, err := l.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.during(ctx, func(cn *conn) error {
		cn.out = append(cn.out[:0], line+"\n"...)
		if err := cn.send(); err != nil {
			return err
		}
		for {
			words, err := readLockLine(cn)
			if err != nil {
				return err
			}
			if done, err := take(words); done || err != nil {
				return err
			}
		}
	})
}

// dial connects within Options.Timeout.
func (l *Locks) dial(ctx context.Context) (*conn, error) {
	ctx, cancel := l.opts.limit(ctx)
	defer cancel()
	return l.opts.dial(ctx, l.addr)
}

// wholeSeconds rounds up to whole seconds, the unit of the protocol.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// checkLockKey refuses a key that would make another command, or none.
func checkLockKey(key string) error {
	if key == "" || strings.ContainsAny(key, " \n\r") || len(key) > maxLockKey {
		return &Error{Code: Invalid, Message: fmt.Sprintf("a lock's key has 1 to %d bytes and no space or line end: %q", maxLockKey, key)}
	}
	return nil
}

// maxLockKey is the longest key with which every command fits into a line of the server.
const maxLockKey = 8000

// readLockLine returns the words of the next line, at least one.
func readLockLine(cn *conn) ([]string, error) {
	line, err := cn.in.ReadString('\n')
	if err != nil {
		return nil, networkError(err)
	}
	return strings.Split(strings.TrimSuffix(line, "\n"), " "), nil
}

// lockReplyError is the error of an unexpected reply.
func lockReplyError(words []string) error {
	return &Error{Code: Miscellaneous, Message: "lock server: " + strings.Join(words, " ")}
}
