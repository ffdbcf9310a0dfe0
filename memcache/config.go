package memcache

import (
	"errors"
	"strings"
	"time"

	"gotycoon/db/expr"
)

const (
	// DefaultPort is the port that memcached clients try first.
	DefaultPort = 11211

	defaultTimeout      = 30 * time.Second
	defaultThreads      = 16
	defaultQueueTimeout = 10 * time.Second
)

// Config is the parsed expression of -plex.
type Config struct {
	Host    string        // host: name or address to listen on; empty: all
	Port    int           // port: port to listen on
	Timeout time.Duration // tout: limit of a wait for request bytes or send space
	Threads int           // th: shown in stats; it has no other effect

	Flags    bool // opts=f: keep clients' flags, in four bytes behind each value; implies Modern
	Modern   bool // opts=m: serve also what the original's plug-in does not know
	Queue    bool // opts=q: set, get and delete work on messages
	ReadOnly bool // opts=r: refuse updates

	QueueTimeout time.Duration // qtout: how long get waits for a message
}

// DefaultConfig returns the configuration of an empty expression.
func DefaultConfig() Config {
	return Config{Port: DefaultPort, Timeout: defaultTimeout, Threads: defaultThreads, QueueTimeout: defaultQueueTimeout}
}

// Errors of New and of Config.Check.
var (
	// ErrReadOnlyQueue: a queue needs updates.
	ErrReadOnlyQueue = errors.New("message queue cannot be read-only")
	// ErrUnorderedQueue: messages are found by the order of their keys. In a hash database they
	// would be stored and never be found.
	ErrUnorderedQueue = errors.New("a message queue needs a database with an order of keys: use %, +, .kct or .kcf as the first database, " +
		"or leave out the option q")
)

// Check returns an error if a database of this kind cannot be served with this configuration.
func (c *Config) Check(kind expr.Kind) error {
	switch {
	case c.Queue && c.ReadOnly:
		return ErrReadOnlyQueue
	case c.Queue && !kind.Ordered():
		return ErrUnorderedQueue
	}
	return nil
}

// ParseConfig parses an expression: fields NAME=VALUE with # between them. As in the original,
// nothing is an error: unknown names and fields without "=" are ignored, a second "=" ends the
// value, and a number that is too small means the default.
func ParseConfig(expr string) Config {
	c := DefaultConfig()
	for field := range strings.SplitSeq(expr, "#") {
		if name, value, found := strings.Cut(field, "="); found {
			value, _, _ = strings.Cut(value, "=")
			c.set(name, value)
		}
	}
	return c
}

func (c *Config) set(name, value string) {
	switch name {
	case "host":
		c.Host = value
	case "port":
		c.Port = positive(value, DefaultPort)
	case "tout", "timeout":
		c.Timeout = defaultTimeout
		if s := leadingFloat(value); s >= 1 {
			c.Timeout = seconds(s)
		}
	case "th", "thnum":
		c.Threads = positive(value, defaultThreads)
	case "opts", "options":
		c.SetOptions(value)
	case "qtout", "qtimeout":
		c.QueueTimeout = defaultQueueTimeout
		if s := leadingFloat(value); s > 0 {
			c.QueueTimeout = seconds(s)
		}
	}
}

// SetOptions sets the options whose letters are given and clears the others. Unknown letters are
// ignored.
func (c *Config) SetOptions(letters string) {
	c.Flags = strings.Contains(letters, "f")
	c.Queue = strings.Contains(letters, "q")
	c.ReadOnly = strings.Contains(letters, "r")
	c.Modern = c.Flags || strings.Contains(letters, "m")
}

// seconds returns a duration of at most a year, so that no sum overflows.
func seconds(s float64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(min(s, year) * float64(time.Second))
}

// positive reads a whole number above 0, with blanks before and anything behind it.
func positive(text string, otherwise int) int {
	if n := leadingInt([]byte(text)); n >= 1 && n <= 1<<31 {
		return int(n)
	}
	return otherwise
}

// Version is the version that the original reports.
const Version = "KyotoTycoon/0.9.56b"

// ModernVersion is the version that a modern server reports: that of the memcached whose commands
// it has, since clients decide by it which commands they may use. It begins with a number, because
// libmemcached takes a server for dead otherwise.
const ModernVersion = "1.6.18-" + Version

// versionText returns the version that a server with this configuration reports.
func (cfg *Config) versionText() string {
	if cfg.Modern {
		return ModernVersion
	}
	return Version
}
