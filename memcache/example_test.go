package memcache_test

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	client "github.com/bradfitz/gomemcache/memcache"

	"gotycoon/db"
	"gotycoon/memcache"
)

// A database served to memcached clients, as -plsv does it.
func Example() {
	catalog, err := db.Open([]string{":"}, db.Options{})
	if err != nil {
		panic(err)
	}
	defer catalog.Close()
	s, err := memcache.New(memcache.Options{
		Config:  memcache.ParseConfig("opts=f#tout=5"),
		DB:      catalog.DB(0),
		Started: time.Now(),
		Logger:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	s.Open(l)
	defer s.Close()

	c := client.New(l.Addr().String())
	defer c.Close()
	if err := c.Set(&client.Item{Key: "japan", Value: []byte("tokyo"), Flags: 1}); err != nil {
		panic(err)
	}
	it, err := c.Get("japan")
	fmt.Println(string(it.Value), it.Flags, err)
	// Output: tokyo 1 <nil>
}
