package gather_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
)

// call is an operation on one key.
type call struct {
	verb  string // get, set, add, cas, bump, remove
	value string
	old   string // of cas
}

// reply is what its caller has heard.
type reply struct {
	value   string // of get and bump; "" for none
	ok      bool
	unknown bool // the update may have been made, or may be made later
}

var errRefused = errors.New("refused")

// register is what one key does, as if there were one server. A state is the value, "" for none.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		now, c, r := state.(string), input.(call), output.(reply)
		ok, next := true, c.value
		switch c.verb {
		case "get":
			return r.value == now, now
		case "add":
			ok = now == ""
		case "cas":
			ok = now == c.old
		case "remove":
			ok, next = now != "", ""
		case "bump":
			n, _ := strconv.Atoi(now)
			next = strconv.Itoa(n + 1)
		}
		if !ok {
			next = now
		}
		return r.unknown || r.ok == ok && (c.verb != "bump" || r.value == next), next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}

// body returns the body of a call, which puts what it finds into r.
func (c call) body(k engine.Key, r *reply) func(v *gather.View) error {
	return func(v *gather.View) error {
		*r = reply{ok: true}
		if c.verb == "set" {
			v.Set(k, []byte(c.value), engine.Forever)
			return nil
		}
		rec, found := v.Read(k)
		switch {
		case c.verb == "bump":
			r.value = strconv.Itoa(addTo(v, k, 1))
		case c.verb == "add" && found, c.verb == "cas" && (!found || string(rec.Value) != c.old), c.verb == "remove" && !found:
			r.ok = false
			return errRefused
		case c.verb == "remove":
			v.Remove(k)
		default:
			v.Set(k, []byte(c.value), engine.Forever)
		}
		return nil
	}
}

// Three servers on one engine are as one server, for each key: whatever fails, and also for callers
// that leave before they are answered; and where servers have keys of their own, and nearly always
// know what is there.
func TestHistoriesAreLinearizable(t *testing.T) {
	for _, guess := range []bool{false, true} {
		eachSeed(t, 6, func(t *testing.T, seed uint64) {
			h := history{guess: guess}
			synctest.Test(t, func(t *testing.T) { h.make(t, seed) })
			h.check(t)
		})
	}
}

// history is what callers have seen, by key. Its clock counts calls and answers.
type history struct {
	guess bool
	clock atomic.Int64
	mu    sync.Mutex
	ops   map[string][]porcupine.Operation
}

func (h *history) make(t *testing.T, seed uint64) {
	h.ops = map[string][]porcupine.Operation{}
	rates := rough
	if h.guess {
		rates = gentle
	}
	w := newWorld(t, 3, mem.Options{Faults: mem.Seeded(seed, rates)}, gather.Options{Timeout: 300 * time.Millisecond})
	defer w.close()
	if h.guess {
		for _, g := range w.gathers {
			g.AlwaysGuess()
		}
	}
	var work sync.WaitGroup
	for i := range 18 {
		work.Go(func() {
			dice := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 25 {
				key, server := dice.IntN(6), i%3
				if h.guess && dice.IntN(8) > 0 {
					server = key % 3
				}
				h.one(t, dice, i, key, w.gathers[server])
			}
		})
	}
	work.Wait()
}

// one makes a call and notes it.
func (h *history) one(t *testing.T, dice *rand.Rand, client, number int, g *gather.Gather) {
	name := strconv.Itoa(number) // of a few: porcupine takes long where a key has many doubtful updates
	small := func() string { return strconv.Itoa(1 + dice.IntN(4)) }
	c := call{[]string{"get", "set", "add", "cas", "bump", "bump", "remove"}[dice.IntN(7)], small(), small()}
	patience := time.Second
	if dice.IntN(4) == 0 {
		patience = time.Duration(1+dice.IntN(100)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var r reply
	var err error
	k, began := key(name), h.clock.Add(1)
	if c.verb == "get" {
		var recs []engine.Record
		if recs, err = g.Read(ctx, []engine.Key{k}); len(recs) == 1 {
			r = reply{value: string(recs[0].Value), ok: true}
		}
		if err != nil {
			return
		}
		r.ok = true
	} else {
		_, err = do(ctx, g, operation{Keys: []engine.Key{k}, Blind: c.verb == "set", Body: c.body(k, &r)})
	}
	over := h.clock.Add(1)
	var failed *engine.Error
	if errors.As(err, &failed) {
		if failed.Kind == engine.Undone {
			return // nothing has happened
		}
		require.Equal(t, engine.Unknown, failed.Kind)
		r, over = reply{unknown: true}, 1<<62
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops[name] = append(h.ops[name], porcupine.Operation{ClientId: client, Input: c, Output: r, Call: began, Return: over})
}

func (h *history) check(t *testing.T) {
	sure, unknown := 0, 0
	for name, ops := range h.ops {
		for _, op := range ops {
			if op.Output.(reply).unknown {
				unknown++
			} else {
				sure++
			}
		}
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(register, ops, time.Minute), "key %s", name)
	}
	require.Greater(t, sure, 300)
	require.Positive(t, unknown)
	t.Log(sure, "certain events,", unknown, "doubtful ones")
}

// The model finds what is wrong.
func TestRegister(t *testing.T) {
	at := func(began, over int64, c call, r reply) porcupine.Operation {
		return porcupine.Operation{Input: c, Output: r, Call: began, Return: over}
	}
	ok := func(value string) reply { return reply{value: value, ok: true} }
	a, b := call{verb: "set", value: "1"}, call{verb: "set", value: "2"}
	require.True(t, porcupine.CheckOperations(register, []porcupine.Operation{at(1, 2, a, ok("")), at(3, 1<<60, b, reply{unknown: true}), at(4, 5, call{verb: "get"}, ok("1")), at(6, 7, call{verb: "get"}, ok("2"))}))
	require.False(t, porcupine.CheckOperations(register, []porcupine.Operation{at(1, 2, a, ok("")), at(3, 4, b, ok("")), at(5, 6, call{verb: "get"}, ok("1"))}))
	require.False(t, porcupine.CheckOperations(register, []porcupine.Operation{at(1, 4, call{verb: "bump"}, ok("1")), at(2, 3, call{verb: "bump"}, ok("1"))}))
}
