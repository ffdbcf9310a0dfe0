package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// writer is a client that changes keys of its own and remembers what it was told.
type writer struct {
	node   *node
	id     int
	keys   int
	shared bool // the keys are everybody's

	attempts int
	acked    int
	possible map[string][]string // by key: what it may hold now, with contents of "" for no record
}

func (w *writer) key(n int) string {
	if w.shared {
		return fmt.Sprintf("shared-%d", n)
	}
	return fmt.Sprintf("own-%d-%d", w.id, n)
}

// run writes until the context ends.
func (w *writer) run(ctx context.Context) {
	w.possible = map[string][]string{}
	rnd := rand.New(rand.NewPCG(uint64(w.id), 1))
	c := w.node.client()
	defer c.Close()
	for ctx.Err() == nil {
		w.attempts++
		key := w.key(rnd.IntN(w.keys))
		becomes, err := w.write(ctx, c.DB(""), key, rnd.IntN(10))
		if err == nil {
			w.acked++
			w.possible[key] = []string{becomes}
			continue
		}
		if w.possible[key] == nil {
			w.possible[key] = []string{""}
		}
		w.possible[key] = append(w.possible[key], becomes)
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond): // the server is being started again
		}
	}
}

// write changes a key and returns what it then holds.
func (w *writer) write(ctx context.Context, db *client.DB, key string, dice int) (becomes string, err error) {
	value := fmt.Sprintf("%d-%d", w.id, w.attempts)
	switch dice {
	case 0:
		err = db.Remove(ctx, key)
		if errors.Is(err, client.ErrNoRecord) {
			err = nil
		}
		return "", err
	case 1:
		at := time.Date(2040, 1, 1, 0, 0, w.attempts%1000, 0, time.UTC)
		return value + at.Format(" 2006-01-02T15:04:05"), db.Set(ctx, key, []byte(value), client.At(at))
	}
	return value + time.Time{}.Format(" 2006-01-02T15:04:05"), db.Set(ctx, key, []byte(value), client.Never)
}

// check fails the test when something acknowledged is not there.
func (w *writer) check(t *testing.T, contents map[string]string) {
	t.Helper()
	for key, possible := range w.possible {
		require.Contains(t, possible, contents[key], "writer %d, key %s: what was acknowledged last is not there", w.id, key)
	}
}

// writers run until stop is called, which returns how many updates were acknowledged.
func startWriters(t *testing.T, all []*writer) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, w := range all {
		wg.Go(func() { w.run(ctx) })
	}
	return func() int {
		cancel()
		wg.Wait()
		acked := 0
		for _, w := range all {
			acked += w.acked
		}
		return acked
	}
}
