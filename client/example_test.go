package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"gotycoon/client"
)

func Example() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	db := c.DB("")
	if err := db.Set(ctx, "japan", []byte("tokyo"), client.In(24*time.Hour)); err != nil {
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

func ExampleClient_SetBinary() {
	ctx := context.Background()
	c := client.New(addr, client.Options{})
	defer c.Close()
	n, err := c.SetBinary(ctx, []client.BinaryRecord{
		{DB: 1, Key: "one", Value: []byte("1"), XT: client.Never},
		{DB: 1, Key: "two", Value: []byte("2"), XT: client.Never},
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
