package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// DefaultLockPort is the port of a lock server that was not told another.
const DefaultLockPort = 11400

// DefaultLockTTL is for how long a lock is taken that was not given another time.
const DefaultLockTTL = 30 * time.Second

// Errors of Locks to test for with errors.Is.
var (
	ErrLockBusy = errors.New("the lock was not granted in time")
	ErrLockLost = errors.New("the lock is lost")
	ErrNoLock   = errors.New("there is no such holder or waiting request") // of Cancel
)

// Locks is a client of a lock server. Any number of goroutines may use it. Each call has a connection of its own.
type Locks struct {
	Addr    string        // HOST:PORT or HOST
	Timeout time.Duration // of one call, for Acquire beside LockOptions.Wait; 0: none
	TLS     *tls.Config   // as in Options
}

// LockOptions are what Acquire asks for.
type LockOptions struct {
	// TTL is for how long the server keeps the lock when this client cannot be heard, in whole seconds, at least 1.
	// While it can, the lock is renewed. 0 means DefaultLockTTL.
	TTL time.Duration

	// Wait is for how long to wait, rounded up to whole seconds; 0 means not at all, negative for ever. The end of the context ends it, too.
	Wait time.Duration

	Max int // how many holders are allowed at the same time; 0 means 1
}

// Acquire waits for a lock, with a fencing token. It returns ErrLockBusy when the lock is not granted in time.
func (l *Locks) Acquire(ctx context.Context, key string, o LockOptions) (*Lock, error) {
	if l.Timeout > 0 && o.Wait >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Timeout+wholeSeconds(o.Wait))
		defer cancel()
	}
	c, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	lock := newLock(c, key, o.TTL)
	if err := c.during(ctx, func(*conn) error { return lock.acquire(o) }); err != nil || c.broken {
		_ = c.Close() // which releases it, or takes it out of the queue
		if err == nil {
			err = networkError(context.Cause(ctx))
		}
		return nil, err
	}
	go lock.keep()
	return lock, nil
}

// LockStatus is the state of a key.
type LockStatus struct{ Holders, Waiters int }

// Status returns how many hold a key, and how many wait for it.
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

// LockEntry is one holder of a key, or one waiting request.
type LockEntry struct {
	Key     string
	Address string        // of the client
	Holds   bool          // otherwise it waits
	Age     time.Duration // for how long it has held or waited
	Left    time.Duration // until it expires or gives up waiting; negative: never
	Max     int           // how many holders it allows
	Fence   uint64        // its fencing token, 0 if it has none
}

// List returns the holders and waiting requests of a key, or of all keys when key is empty: by key, holders first, each in their order.
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

// Cancel ends the request of the client at an address, which List tells: if it waits, its time is over; if it holds the lock, the
// lock expires now. It returns ErrNoLock when there is none.
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

// call sends a line and reads lines until done returns true or an error.
func (l *Locks) call(ctx context.Context, key, line string, take func(words []string) (done bool, err error)) error {
	if err := checkLockKey(key); key != "" && err != nil {
		return err
	}
	if l.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Timeout)
		defer cancel()
	}
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

// dial connects within the time of one call.
func (l *Locks) dial(ctx context.Context) (*conn, error) {
	if l.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Timeout)
		defer cancel()
	}
	addr := l.Addr
	if _, _, err := net.SplitHostPort(addr); err != nil {
		addr = net.JoinHostPort(addr, strconv.Itoa(DefaultLockPort))
	}
	return dial(ctx, addr, l.TLS)
}

// wholeSeconds rounds up, as the protocol has no others.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// checkLockKey refuses what would be another command, or none.
func checkLockKey(key string) error {
	if key == "" || strings.ContainsAny(key, " \n\r") || len(key) > maxLockKey {
		return fmt.Errorf("a lock's key has 1 to %d bytes and no space or line end: %q", maxLockKey, key)
	}
	return nil
}

// maxLockKey leaves room for the longest command within the longest line.
const maxLockKey = 8000

// readLockLine returns the words of the next line, at least one.
func readLockLine(cn *conn) ([]string, error) {
	line, err := cn.in.ReadString('\n')
	if err != nil {
		return nil, networkError(err)
	}
	return strings.Split(strings.TrimSuffix(line, "\n"), " "), nil
}

// lockReplyError is a reply that has no other meaning.
func lockReplyError(words []string) error {
	return fmt.Errorf("lock server: %s", strings.Join(words, " "))
}
