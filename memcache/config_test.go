package memcache

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
)

func TestParseConfig(t *testing.T) {
	with := func(change func(*Config)) Config {
		c := DefaultConfig()
		change(&c)
		return c
	}
	for _, row := range []struct {
		expr string
		want Config
	}{
		{"", DefaultConfig()},
		{"port=2010", with(func(c *Config) { c.Port = 2010 })},
		{"port= 20316x#th=2.9#host=localhost ", with(func(c *Config) { c.Port, c.Threads, c.Host = 20316, 2, "localhost " })},
		{"port=0#th=-1#tout=0.5#qtout=0", DefaultConfig()},
		{"tout=1.5x#qtout=0.25", with(func(c *Config) { c.Timeout, c.QueueTimeout = 1500*time.Millisecond, 250*time.Millisecond })},
		{"timeout=3#thnum=4#qtimeout=5", with(func(c *Config) {
			c.Timeout, c.Threads, c.QueueTimeout = 3*time.Second, 4, 5*time.Second
		})},
		{"opts=fqx", with(func(c *Config) { c.Flags, c.Modern, c.Queue = true, true, true })},
		{"opts=f#options=r", with(func(c *Config) { c.ReadOnly = true })},
		{"opts=m=f", with(func(c *Config) { c.Modern = true })},
		{"PORT=1#port#opts =f", DefaultConfig()},
		{"tout=-", DefaultConfig()},
		{"tout=1e9", with(func(c *Config) { c.Timeout = time.Second })},
	} {
		require.Equal(t, row.want, ParseConfig(row.expr), row.expr)
	}
}

func TestLeadingInt(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "12": 12, " \t-7x": -7, "+3": 3, "abc": 0, "007": 7, "1.9": 1,
		"999999999999999999": 999999999999999999, "9223372036854775808": -9223372036854775808,
		"18446744073709551615": -1, "-9223372036854775808": -9223372036854775808} {
		require.Equal(t, want, leadingInt([]byte(text)), text)
	}
}

// Messages in a database without an order would be stored, and never found.
func TestQueuesThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	for _, row := range []struct {
		opts, db string
		want     error
	}{
		{"qr", "%", ErrReadOnlyQueue},
		{"q", "%", nil}, {"q", "+", nil}, {"q", dir + "/a.kct", nil}, {"q", dir + "/a.kcf", nil},
		{"q", "-", ErrUnorderedQueue}, {"q", ":", ErrUnorderedQueue}, {"q", "*", ErrUnorderedQueue}, {"q", dir + "/a.kch", ErrUnorderedQueue},
		{"q", dir + "/a.kcd", ErrUnorderedQueue}, {"q", dir + "/a.kcx", ErrUnorderedQueue},
		{"f", ":", nil}, {"r", ":", nil},
	} {
		catalog, err := db.Open([]string{row.db}, db.Options{})
		require.NoError(t, err)
		_, err = New(Options{Config: ParseConfig("opts=" + row.opts), DB: catalog.DB(0)})
		require.ErrorIs(t, err, row.want, "%s on %s", row.opts, row.db)
		require.NoError(t, catalog.Close())
	}
}
