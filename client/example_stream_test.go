package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"gotycoon/client"
)

// Watch tells what happens to the records of a database.
func ExampleDB_Watch() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	db := c.DB("")
	for u, err := range db.Watch(ctx, client.WatchOptions{Prefix: "user:", Progress: true}) {
		switch {
		case errors.Is(err, client.ErrGap):
			log.Fatal("some changes are lost: read all records, and watch again")
		case err != nil:
			log.Fatal(err)
		case u.Kind == client.Progress: // it watches; others would store the record
			_ = db.Set(ctx, "user:1", []byte("anna"), client.Never)
		case u.Kind == client.Stored:
			fmt.Printf("%v %s=%s\n", u.Kind, u.Key, u.Value)
			return
		}
	}
	// Output:
	// stored user:1=anna
}

// Follow reads the update log: what has happened in all databases, and goes on to happen.
func ExampleClient_Follow() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	db := c.DB("tree")
	_ = db.Clear(ctx)
	_ = db.Set(ctx, "a", []byte("1"), client.In(time.Hour))
	_ = db.Remove(ctx, "a")
	var last []client.Update
	for u, err := range c.Follow(ctx, client.FollowOptions{All: true, Progress: true}) {
		if err != nil {
			log.Fatal(err)
		}
		if u.Kind == client.Progress { // that is all for now
			break
		}
		last = append(last, u)
	}
	for _, u := range last[len(last)-3:] {
		fmt.Printf("database %d: %v %q %q\n", u.DB, u.Kind, u.Key, u.Value)
	}
	// Output:
	// database 1: cleared "" ""
	// database 1: stored "a" "1"
	// database 1: removed "a" ""
}

// A program that is not always there has the server keep the log for it.
func ExampleClient_UlogHold() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	at, gap, err := c.UlogHold(ctx, "nightly-report", 0, 36*time.Hour)
	fmt.Println(at > 0, gap, err)
	_ = c.DB("").Set(ctx, "meanwhile", nil, client.Never)
	for u, err := range c.Follow(ctx, client.FollowOptions{After: at}) {
		fmt.Println(u.Kind, u.Key, err)
		break
	}
	fmt.Println(c.UlogRelease(ctx, "nightly-report"))
	// Output:
	// true false <nil>
	// stored meanwhile <nil>
	// <nil>
}
