package tutorial

// sample does what the published sample application does: it stores three records, reads one and
// then all of them.
const sample = `package main

import (
	"context"
	"fmt"
	"log"

	"gotycoon/client"
)

func main() {
	ctx := context.Background()
	c := client.New("localhost:1978", client.Options{})
	defer c.Close()
	db := c.DB("")
	for key, value := range map[string]string{"foo": "hop", "bar": "step", "baz": "jump"} {
		if err := db.Set(ctx, key, []byte(value), client.Never); err != nil {
			log.Fatal("set error: ", err)
		}
	}
	value, err := db.Get(ctx, "foo")
	if err != nil {
		log.Fatal("get error: ", err)
	}
	fmt.Printf("%s\n", value)
	for record, err := range db.All(ctx) {
		if err != nil {
			log.Fatal("cursor error: ", err)
		}
		fmt.Printf("%s:%s\n", record.Key, record.Value)
	}
}
`
