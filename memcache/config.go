package memcache

import (
	"strconv"
	"strings"
	"time"

	"gotycoon/db"
)

const (
	// DefaultPort is the port where memcached clients look first.
	DefaultPort = 11211

	defaultTimeout      = 30 * time.Second
	defaultThreads      = 16
	defaultQueueTimeout = 10 * time.Second
)

// Config is what the expression of -plex says.
type Config struct {
	Host    string        // name or address to listen on (host); empty: all
	Port    int           // port to listen on (port)
	Timeout time.Duration // limit of a wait for the rest of a request, or for send space (tout)
	Threads int           // number that stats reports (th); every connection has a goroutine anyway

	Flags    bool // keep the clients' flags, in four bytes behind each value (opts=f); implies Modern
	Modern   bool // also everything that the original's plug-in does not know (opts=m)
	Queue    bool // set, get and delete work on messages (opts=q)
	ReadOnly bool // refuse updates (opts=r)

	QueueTimeout time.Duration // how long get waits for a message (qtout)
}

// DefaultConfig returns the configuration of an empty expression.
func DefaultConfig() Config {
	return Config{Port: DefaultPort, Timeout: defaultTimeout, Threads: defaultThreads, QueueTimeout: defaultQueueTimeout}
}

// Check returns why a database of a kind cannot be served with this configuration.
func (c *Config) Check(kind db.Kind) error {
	switch {
	case c.Queue && c.ReadOnly:
		return ErrReadOnlyQueue
	case c.Queue && !kind.Ordered():
		return ErrUnorderedQueue
	}
	return nil
}

// ParseConfig parses an expression: name=value fields with # between them. As in the original nothing is refused: unknown
// names and fields without "=" are ignored, of a value with "=" only what is before it counts, and a number too small is
// the default.
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

// SetOptions sets the options that letters stand for, and unsets the others. Unknown letters are ignored.
func (c *Config) SetOptions(letters string) {
	c.Flags = strings.Contains(letters, "f")
	c.Queue = strings.Contains(letters, "q")
	c.ReadOnly = strings.Contains(letters, "r")
	c.Modern = c.Flags || strings.Contains(letters, "m")
}

// seconds is bounded by a year, so that no sum overflows.
func seconds(s float64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(min(s, year) * float64(time.Second))
}

// positive is a whole number with blanks before and anything behind it.
func positive(text string, otherwise int) int {
	if n := leadingInt([]byte(text)); n >= 1 && n <= 1<<31 {
		return int(n)
	}
	return otherwise
}

// leadingFloat is a decimal fraction with blanks before and anything behind it; 0 where there is none.
func leadingFloat(text string) float64 {
	text = strings.TrimLeft(text, " \t")
	end := 0
	for end < len(text) && strings.IndexByte("+-.0123456789", text[end]) >= 0 {
		end++
	}
	for ; end > 0; end-- {
		if n, err := strconv.ParseFloat(text[:end], 64); err == nil {
			return n
		}
	}
	return 0
}
