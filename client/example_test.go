package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"gotycoon/client"
)

func Example() {
	ctx := context.Background()
	c := client.New(addr, client.Options{Timeout: 5 * time.Second})
	defer c.Close()
	db := c.DB("") // the first; or its name or number
	if err := db.Set(ctx, "japan", []byte("tokyo"), client.Never); err != nil {
		log.Fatal(err)
	}
	value, err := db.Get(ctx, "japan")
	fmt.Println(string(value), err)
	_, err = db.Get(ctx, "atlantis")
	fmt.Println(errors.Is(err, client.ErrNoRecord))
	// Output:
	// tokyo <nil>
	// true
}

// Of the servers of a cluster one is the primary. The client finds it, and another one when it
// dies.
func ExampleNew_severalServers() {
	ctx := context.Background()
	c := client.New("127.0.0.1:1,"+addr, client.Options{Timeout: 5 * time.Second, ReadReplicas: true})
	defer c.Close()
	fmt.Println(c.DB("").Set(ctx, "japan", []byte("tokyo"), client.Never))
	// Output:
	// <nil>
}

// A record lives for ever unless an expiry says something else.
func ExampleExpiry() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	db := c.DB("")
	_ = db.Set(ctx, "session", []byte("anna"), client.In(30*time.Minute))
	_ = db.Set(ctx, "offer", []byte("two for one"), client.At(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)))
	_ = db.Set(ctx, "account", []byte("anna"), client.Never)
	offer, _ := db.GetRecord(ctx, "offer")
	account, _ := db.GetRecord(ctx, "account")
	fmt.Println(offer.Expires.UTC())
	fmt.Println(account.Expires.IsZero())
	// Output:
	// 2100-01-01 00:00:00 +0000 UTC
	// true
}

func ExampleDB_Touch() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	db := c.DB("")
	_ = db.Set(ctx, "session", []byte("anna"), client.In(time.Minute))
	fmt.Println(db.Touch(ctx, "session", client.In(time.Hour)))
	ttl, err := db.TTL(ctx, "session")
	fmt.Println(ttl.Round(time.Minute), err)
	// Output:
	// <nil>
	// 1h0m0s <nil>
}

func ExampleDB_CAS() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	db := c.DB("")
	_ = db.Set(ctx, "owner", []byte("alice"), client.Never)
	fmt.Println(db.CAS(ctx, "owner", []byte("alice"), []byte("bob"), client.Never))
	fmt.Println(errors.Is(db.CAS(ctx, "owner", []byte("alice"), []byte("carol"), client.Never), client.ErrConflict))
	// Output:
	// <nil>
	// true
}

func ExampleDB_Increment() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	db := c.DB("")
	_ = db.Remove(ctx, "visits")
	for range 2 {
		fmt.Println(db.Increment(ctx, "visits", 1, 100, client.Never)) // begins at 100
	}
	_, err := db.Increment(ctx, "nobody", 1, client.OrigTry, client.Never)
	fmt.Println(errors.Is(err, client.ErrConflict))
	// Output:
	// 101 <nil>
	// 102 <nil>
	// true
}

func ExampleDB_SetBulk() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	db := c.DB("tree")
	_ = db.Clear(ctx)
	fmt.Println(db.SetBulk(ctx, map[string][]byte{"fr:1": []byte("un"), "fr:2": []byte("deux"), "de:1": []byte("eins")}, client.Never, true))
	values, _ := db.GetBulk(ctx, []string{"fr:1", "it:1"}, true)
	fmt.Printf("%s\n", values)
	fmt.Println(db.MatchPrefix(ctx, "fr:", 10))
	fmt.Println(db.RemoveBulk(ctx, []string{"fr:1", "fr:2", "fr:3"}, true))
	// Output:
	// 3 <nil>
	// map[fr:1:un]
	// [fr:1 fr:2] <nil>
	// 2 <nil>
}

func ExampleClient_SetBinary() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	n, err := c.SetBinary(ctx, []client.BinaryRecord{
		{DB: 1, Key: "one", Value: []byte("1")},
		{DB: 1, Key: "two", Value: []byte("2"), Expiry: client.In(time.Hour)},
	})
	fmt.Println(n, err)
	records, err := c.GetBinary(ctx, 1, []string{"two", "three"})
	for _, r := range records {
		fmt.Printf("%s=%s\n", r.Key, r.Value)
	}
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// two=2
	// <nil>
}

func ExampleDB_All() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	db := c.DB("tree")
	_ = db.Clear(ctx)
	_, _ = db.SetBulk(ctx, map[string][]byte{"b": []byte("2"), "a": []byte("1")}, client.Never, true)
	for record, err := range db.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s=%s\n", record.Key, record.Value)
	}
	// Output:
	// a=1
	// b=2
}

// In an ordered database a cursor goes both ways.
func ExampleCursor() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	db := c.DB("tree")
	_ = db.Clear(ctx)
	_, _ = db.SetBulk(ctx, map[string][]byte{"a": nil, "b": nil, "c": nil, "d": nil}, client.Never, true)
	cursor := db.Cursor()
	if err := cursor.JumpBackKey(ctx, "bz"); err != nil {
		log.Fatal(err)
	}
	for key, err := range cursor.Keys(ctx) {
		fmt.Println(key, err)
	}
	// Output:
	// b <nil>
	// a <nil>
}

// One call waits until another one has been made.
func ExampleDB_With() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	news := make(chan string)
	go func() {
		value, err := c.DB("").With(client.Signals{Wait: "news", WaitTime: time.Minute}).Get(ctx, "headline")
		news <- fmt.Sprintf("%s %v", value, err)
	}()
	_ = c.DB("").Set(ctx, "headline", []byte("it works"), client.Never)
	for {
		select {
		case text := <-news:
			fmt.Println(text)
			return
		default: // signals are not remembered
			_, _ = c.Signal(ctx, "news", true)
		}
	}
	// Output:
	// it works <nil>
}

// The server of this example has the script
//
//	function join(input, output)
//	  output.text = input.first .. " " .. input.second
//	  return __kyototycoon__.RVSUCCESS
//	end
func ExampleDB_PlayScript() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	rows, err := c.DB("").PlayScript(ctx, "join", map[string][]byte{"first": []byte("Hello,"), "second": []byte("Lua")})
	fmt.Println(string(rows["text"]), err)
	// Output:
	// Hello, Lua <nil>
}

// A procedure without a method of its own is called by its name.
func ExampleDB_Call() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	rows, err := c.DB("").Call(ctx, "help", "name", "remove")
	fmt.Println(string(rows["key"]), err)
	_, err = c.DB("").Call(ctx, "no_such_procedure")
	fmt.Println(errors.Is(err, errors.ErrUnsupported))
	// Output:
	// the key <nil>
	// true
}

// Figures of the server and of its databases.
func ExampleDB_Status() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	_ = c.DB("tree").Clear(ctx)
	status, err := c.DB("tree").Status(ctx)
	fmt.Println(status.Int("count"), err)
	report, err := c.Report(ctx)
	fmt.Println(report.Int("serv_conn_count") > 0, err)
	// Output:
	// 0 <nil>
	// true <nil>
}

// Another server's tables are copied as they are at one moment.
func ExampleDB_Copy() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	db := c.DB("tree")
	_ = db.Clear(ctx)
	_, _ = db.SetBulk(ctx, map[string][]byte{"a": nil, "b": nil}, client.Never, true)
	var keys []string
	err := db.Copy(ctx, client.CopyOptions{
		Begin: func(about client.CopyInfo) error { fmt.Println(about.Count, "records"); return nil },
		Visit: func(key, _ []byte) error { keys = append(keys, string(key)); return nil },
	})
	slices.Sort(keys)
	fmt.Println(keys, err)
	// Output:
	// 2 records
	// [a b] <nil>
}
