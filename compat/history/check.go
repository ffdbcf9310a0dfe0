package history

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkLimit is how long porcupine may look at the history of one key. What it has not decided by
// then is no history that was checked: the test fails.
const checkLimit = time.Minute

// register is what one key does, as if there were one server. A state is the value, "" for none.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		return step(state.(string), input.(Call), output.(Reply))
	},
	DescribeOperation: func(input, output any) string {
		return describe(input.(Call), output.(Reply))
	},
	DescribeState: func(state any) string { return state.(string) },
}

func step(now string, c Call, r Reply) (fits bool, next string) {
	sure := r.Certainty == Done
	switch c.Verb {
	case Get:
		return r.Value == now && r.OK == (now != ""), now
	case Set:
		return true, c.Value
	case Remove:
		return !sure || r.OK == (now != ""), ""
	case Append:
		return !sure || r.OK, now + c.Value
	case Add, Cas:
		if now == c.Old {
			return !sure || r.OK, c.Value
		}
		return !sure || !r.OK, now
	default:
		if now == "" && c.Verb == Bump {
			return !sure || !r.OK, now
		}
		n, _ := strconv.Atoi(now) // keys of numbers have nothing else
		next = strconv.Itoa(n + c.By)
		return !sure || r.OK && r.Value == next, next
	}
}

func describe(c Call, r Reply) string {
	text := fmt.Sprintf("%s %s", c.Verb, c.Key)
	switch c.Verb {
	case Set, Add, Append:
		text += " = " + c.Value
	case Cas:
		text += fmt.Sprintf(" %q → %s", c.Old, c.Value)
	case Incr, Bump:
		text += fmt.Sprintf(" + %d", c.By)
	}
	if r.Certainty == Unknown {
		return text + ": ?"
	}
	return fmt.Sprintf("%s: %v %s", text, r.OK, r.Value)
}

// Event is a request with its time. An event of unknown outcome has no end.
type Event struct {
	Call        Call
	Reply       Reply
	Began, Over time.Duration
	Client      int
	Where       string // protocol and server
}

// Check has porcupine look at the events of each key. It returns how many requests it could use,
// and of how many the outcome is not known.
func Check(t *testing.T, events []Event) (counted, doubted int) {
	t.Helper()
	byKey := map[string][]Event{}
	for _, e := range events {
		if e.Reply.Certainty == Refused || e.Reply.Certainty == Unknown && e.Call.Verb == Get {
			continue
		}
		if e.Reply.Certainty == Unknown {
			doubted++
			e.Over = 1 << 62
		}
		counted++
		byKey[e.Call.Key] = append(byKey[e.Call.Key], e)
	}
	for key, all := range byKey {
		var ops []porcupine.Operation
		for _, e := range all {
			ops = append(ops, porcupine.Operation{ClientId: e.Client, Input: e.Call, Output: e.Reply, Call: int64(e.Began), Return: int64(e.Over), Metadata: e.Where})
		}
		result, info := porcupine.CheckOperationsVerbose(register, ops, checkLimit)
		switch result {
		case porcupine.Illegal:
			t.Errorf("the history of the key %s is none of one server:\n%s", key, where(all, info))
			return counted, doubted
		case porcupine.Unknown:
			t.Errorf("the history of the key %s, with %d events, takes too long to check: fewer requests must be on one key", key, len(all))
		}
	}
	return counted, doubted
}

// where prints the events around the place where no order of them fits.
func where(all []Event, info porcupine.LinearizationInfo) string {
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
		last = max(last, all[i].Began)
	}
	shown := 0
	for i, e := range all {
		if e.Began > last-200*time.Millisecond && e.Began < last+200*time.Millisecond || !in[i] && shown < 60 || e.Reply.Certainty == Unknown {
			shown++
			mark := " "
			if !in[i] {
				mark = "!"
			}
			text += fmt.Sprintf("%s %v – %v client %d %s: %s\n", mark, e.Began, e.Over, e.Client, e.Where, describe(e.Call, e.Reply))
		}
	}
	return text
}
