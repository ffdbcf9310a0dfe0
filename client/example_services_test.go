package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"gotycoon/client"
)

func ExampleLocks() {
	ctx := context.Background()
	locks := client.NewLocks(lockAddr, client.Options{Timeout: 5 * time.Second})
	held, err := locks.Acquire(ctx, "report", client.LockOptions{Wait: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	select {
	case <-held.Lost(): // end the work: somebody else may have the lock
	default:
		fmt.Println(held.Fence() > 0) // the token goes with every write, whose receiver refuses lower ones
	}
	_, err = locks.Acquire(ctx, "report", client.LockOptions{})
	fmt.Println(errors.Is(err, client.ErrLockBusy))
	fmt.Println(held.Release(ctx))
	// Output:
	// true
	// true
	// <nil>
}

func ExampleCounters() {
	ctx := context.Background()
	c, err := client.DialCounters(ctx, counterAddr, client.Options{Timeout: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close() // gives back what has been acquired
	fmt.Println(c.Acquire(ctx, "licences", 3, 5))
	fmt.Println(errors.Is(c.Acquire(ctx, "licences", 3, 5), client.ErrNotAvailable))
	fmt.Println(c.Get(ctx, "licences"))
	// Output:
	// <nil>
	// true
	// 3 <nil>
}

func ExampleSequence() {
	ctx := context.Background()
	orders := client.NewSequence(sequenceAddr, "orders", client.Options{Timeout: 5 * time.Second})
	defer orders.Close()
	numbers, err := orders.Fetch(ctx, 3)
	fmt.Println(len(numbers), numbers[0] != numbers[1], err)
	// Output:
	// 3 true <nil>
}

func ExampleQuota() {
	ctx := context.Background()
	seats := client.NewQuota(quotaAddr, "seats", client.Options{Timeout: 5 * time.Second})
	defer seats.Close()
	_, _ = seats.Increase(ctx, 100, "opening night") // counts once under this id
	journal, remaining, err := seats.Apply(ctx, 30, "")
	fmt.Println(journal > 0, remaining, err)
	_, _, err = seats.Apply(ctx, 500, "")
	fmt.Println(errors.Is(err, client.ErrQuota))
	_, remaining, err = seats.Cancel(ctx, journal, "")
	fmt.Println(remaining, err)
	// Output:
	// true 70 <nil>
	// true
	// 100 <nil>
}

// Whether a call may be repeated depends on whether the server can have got it.
func ExampleError() {
	ctx := context.Background()
	c := client.New("127.0.0.1:1", client.Options{}) // nobody is there
	defer c.Close()
	_, err := c.DB("").Increment(ctx, "n", 1, 0, client.Never)
	fmt.Println(errors.Is(err, client.ErrNetwork), errors.Is(err, client.ErrNotSent), errors.Is(err, client.ErrOutcomeUnknown))
	failed, ok := errors.AsType[*client.Error](err)
	fmt.Println(ok, failed.Code)
	// Output:
	// true true false
	// true network error
}
