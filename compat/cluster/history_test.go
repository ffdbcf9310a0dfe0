package cluster

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// checkLimit is how long porcupine may look at the history of one key.
const checkLimit = 10 * time.Second

// register is what one key does, as if there were one server. A state is the value, "" for none.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		return step(state.(string), input.(call), output.(reply))
	},
	DescribeOperation: func(input, output any) string {
		return describe(input.(call), output.(reply))
	},
	DescribeState: func(state any) string { return state.(string) },
}

func step(now string, c call, r reply) (fits bool, next string) {
	sure := r.certainty == done
	switch c.verb {
	case get:
		return r.value == now && r.ok == (now != ""), now
	case set:
		return true, c.value
	case remove:
		return !sure || r.ok == (now != ""), ""
	case cas:
		if now == c.old {
			return !sure || r.ok, c.value
		}
		return !sure || !r.ok, now
	default:
		if now == "" && c.verb == bump {
			return !sure || !r.ok, now
		}
		n, _ := strconv.Atoi(now) // keys of numbers have nothing else
		next = strconv.Itoa(n + c.by)
		return !sure || r.ok && r.value == next, next
	}
}

func describe(c call, r reply) string {
	text := fmt.Sprintf("%s %s", c.verb, c.key)
	switch c.verb {
	case set:
		text += " = " + c.value
	case cas:
		text += fmt.Sprintf(" %q → %s", c.old, c.value)
	case incr, bump:
		text += fmt.Sprintf(" + %d", c.by)
	}
	if r.certainty == unknown {
		return text + ": ?"
	}
	return fmt.Sprintf("%s: %v %s", text, r.ok, r.value)
}

// event is a request with its time. An event of unknown outcome has no end.
type event struct {
	call        call
	reply       reply
	began, over time.Duration
	client      int
	where       string // protocol and member
}

// checkHistory has porcupine look at the events of each key.
func checkHistory(t *testing.T, events []event) (counted, doubted int) {
	t.Helper()
	byKey := map[string][]event{}
	for _, e := range events {
		if e.reply.certainty == refused || e.reply.certainty == unknown && e.call.verb == get {
			continue
		}
		if e.reply.certainty == unknown {
			doubted++
			e.over = 1 << 62
		}
		counted++
		byKey[e.call.key] = append(byKey[e.call.key], e)
	}
	for key, all := range byKey {
		var ops []porcupine.Operation
		for _, e := range all {
			ops = append(ops, porcupine.Operation{ClientId: e.client, Input: e.call, Output: e.reply, Call: int64(e.began), Return: int64(e.over), Metadata: e.where})
		}
		result, info := porcupine.CheckOperationsVerbose(register, ops, checkLimit)
		switch result {
		case porcupine.Illegal:
			t.Errorf("the history of the key %s is none of one server:\n%s", key, where(all, info))
			return counted, doubted
		case porcupine.Unknown:
			t.Logf("the history of the key %s, with %d events, takes too long to check", key, len(all))
		}
	}
	return counted, doubted
}

// where prints the events around the place where no order of them fits.
func where(all []event, info porcupine.LinearizationInfo) string {
	longest := 0
	for _, parts := range info.PartialLinearizations() {
		for _, p := range parts {
			longest = max(longest, len(p))
		}
	}
	text := fmt.Sprintf("%d of %d events can be put in order\n", longest, len(all))
	in := map[int]bool{}
	for _, parts := range info.PartialLinearizations() {
		for _, p := range parts {
			if len(p) == longest {
				for _, i := range p {
					in[i] = true
				}
			}
		}
	}
	last := time.Duration(0)
	for i := range in {
		last = max(last, all[i].began)
	}
	shown := 0
	for i, e := range all {
		if e.began > last-200*time.Millisecond && e.began < last+200*time.Millisecond || !in[i] && shown < 60 || e.reply.certainty == unknown {
			shown++
			mark := " "
			if !in[i] {
				mark = "!"
			}
			text += fmt.Sprintf("%s %v – %v client %d %s: %s\n", mark, e.began, e.over, e.client, e.where, describe(e.call, e.reply))
		}
	}
	return text
}

func TestRegister(t *testing.T) {
	ok := func(value string) reply { return reply{certainty: done, ok: true, value: value} }
	at := func(began, over int, c call, r reply) event {
		c.key = "k"
		return event{call: c, reply: r, began: time.Duration(began), over: time.Duration(over)}
	}
	check := func(events ...event) porcupine.CheckResult {
		var ops []porcupine.Operation
		for _, e := range events {
			ops = append(ops, porcupine.Operation{Input: e.call, Output: e.reply, Call: int64(e.began), Return: int64(e.over)})
		}
		return porcupine.CheckOperationsTimeout(register, ops, checkLimit)
	}
	a, b := call{verb: set, value: "a"}, call{verb: set, value: "b"}
	require.Equal(t, porcupine.Ok, check(at(1, 2, a, ok("")), at(3, 1<<60, b, doubtful), at(5, 6, call{verb: get}, ok("a")), at(7, 8, call{verb: get}, ok("a"))))
	require.Equal(t, porcupine.Illegal, check(at(1, 2, a, ok("")), at(3, 4, b, ok("")), at(5, 6, call{verb: get}, ok("a"))))
	require.Equal(t, porcupine.Illegal, check(at(1, 2, a, ok("")), at(3, 1<<60, b, doubtful), at(5, 6, call{verb: get}, ok("b")), at(7, 8, call{verb: get}, ok("a"))))
	require.Equal(t, porcupine.Illegal, check(at(1, 2, call{verb: incr, by: 2}, ok("2")), at(3, 4, call{verb: incr, by: 3}, ok("3"))))
	require.Equal(t, porcupine.Ok, check(at(1, 2, a, ok("")), at(3, 4, call{verb: cas, old: "a", value: "b"}, ok("")), at(5, 6, call{verb: remove}, ok(""))))
}
