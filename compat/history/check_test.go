package history

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

func TestRegister(t *testing.T) {
	ok := func(value string) Reply { return Reply{Certainty: Done, OK: true, Value: value} }
	at := func(began, over int, c Call, r Reply) Event {
		c.Key = "k"
		return Event{Call: c, Reply: r, Began: time.Duration(began), Over: time.Duration(over)}
	}
	check := func(events ...Event) porcupine.CheckResult {
		var ops []porcupine.Operation
		for _, e := range events {
			ops = append(ops, porcupine.Operation{Input: e.Call, Output: e.Reply, Call: int64(e.Began), Return: int64(e.Over)})
		}
		return porcupine.CheckOperationsTimeout(register, ops, checkLimit)
	}
	a, b := Call{Verb: Set, Value: "a"}, Call{Verb: Set, Value: "b"}
	require.Equal(t, porcupine.Ok, check(at(1, 2, a, ok("")), at(3, 1<<60, b, Reply{}), at(5, 6, Call{Verb: Get}, ok("a")), at(7, 8, Call{Verb: Get}, ok("a"))))
	require.Equal(t, porcupine.Illegal, check(at(1, 2, a, ok("")), at(3, 4, b, ok("")), at(5, 6, Call{Verb: Get}, ok("a"))))
	require.Equal(t, porcupine.Illegal, check(at(1, 2, a, ok("")), at(3, 1<<60, b, Reply{}), at(5, 6, Call{Verb: Get}, ok("b")), at(7, 8, Call{Verb: Get}, ok("a"))))
	require.Equal(t, porcupine.Illegal, check(at(1, 2, Call{Verb: Incr, By: 2}, ok("2")), at(3, 4, Call{Verb: Incr, By: 3}, ok("3"))))
	require.Equal(t, porcupine.Ok, check(at(1, 2, a, ok("")), at(3, 4, Call{Verb: Cas, Old: "a", Value: "b"}, ok("")), at(5, 6, Call{Verb: Remove}, ok(""))))
	require.Equal(t, porcupine.Illegal, check(at(1, 2, a, ok("")), at(3, 4, Call{Verb: Add, Value: "b"}, ok(""))))
	require.Equal(t, porcupine.Ok, check(at(1, 2, a, ok("")), at(3, 4, Call{Verb: Append, Value: "b"}, ok("")), at(5, 6, Call{Verb: Get}, ok("ab"))))
}
