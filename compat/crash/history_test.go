package crash

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

// change is a new state of one key.
type change struct {
	key, value string
	removed    bool
}

// update is what happens all at once or not at all.
type update struct {
	clear   bool // everything is removed first
	changes []change
}

func (u *update) apply(state map[string]string) {
	if u.clear {
		clear(state)
	}
	for _, c := range u.changes {
		if c.removed {
			delete(state, c.key)
		} else {
			state[c.key] = c.value
		}
	}
}

// history is what one client has done since its part of the database was looked at.
type history struct {
	base  map[string]string // what was there then
	sent  []update          // in the order in which the server gets them
	acked int               // how many of them the server has acknowledged
}

// verify checks the records after a crash. They are the beginning of a new history.
func (h *history) verify(actual map[string]string) error {
	state := maps.Clone(h.base)
	if state == nil {
		state = map[string]string{}
	}
	for i := range h.acked {
		h.sent[i].apply(state)
	}
	wanted := maps.Clone(state)
	for i := h.acked; !maps.Equal(state, actual); i++ {
		if i == len(h.sent) {
			return fmt.Errorf("%d updates acknowledged, %d sent: %s", h.acked, len(h.sent), firstDifference(wanted, actual))
		}
		h.sent[i].apply(state)
	}
	*h = history{base: maps.Clone(actual)}
	return nil
}

// firstDifference describes one key that is not as it was acknowledged, for the eyes of a person.
func firstDifference(want, got map[string]string) string {
	for key, value := range want {
		if have, ok := got[key]; !ok || have != value {
			return fmt.Sprintf("%q: acknowledged %.40q, have %.40q (present: %v); %d records acknowledged, %d there",
				key, value, have, ok, len(want), len(got))
		}
	}
	for key, value := range got {
		if _, ok := want[key]; !ok {
			return fmt.Sprintf("%q: not acknowledged, have %.40q; %d records acknowledged, %d there",
				key, value, len(want), len(got))
		}
	}
	return "unacknowledged updates are there in part"
}

func TestHistoryFindsLosses(t *testing.T) {
	set := func(key, value string) update { return update{changes: []change{{key: key, value: value}}} }
	remove := func(key string) update { return update{changes: []change{{key: key, removed: true}}} }
	atomic := update{changes: []change{{key: "x", value: "1"}, {key: "y", value: "1"}}}
	type state = map[string]string
	cases := []struct {
		name   string
		sent   []update
		acked  int
		actual state
		ok     bool
	}{
		{"nothing sent", nil, 0, state{"a": "0"}, true},
		{"something from nowhere", nil, 0, state{"a": "0", "b": "1"}, false},
		{"acknowledged and there", []update{set("b", "1")}, 1, state{"a": "0", "b": "1"}, true},
		{"acknowledged and lost", []update{set("b", "1")}, 1, state{"a": "0"}, false},
		{"sent and there", []update{set("b", "1")}, 0, state{"a": "0", "b": "1"}, true},
		{"sent and not there", []update{set("b", "1")}, 0, state{"a": "0"}, true},
		{"an older value", []update{set("a", "1"), set("a", "2")}, 2, state{"a": "1"}, false},
		{"the second without the first", []update{set("b", "1"), set("c", "1")}, 0, state{"a": "0", "c": "1"}, false},
		{"removed and there again", []update{remove("a")}, 1, state{"a": "0"}, false},
		{"half of an atomic bulk", []update{atomic}, 0, state{"a": "0", "x": "1"}, false},
		{"a whole atomic bulk", []update{atomic}, 0, state{"a": "0", "x": "1", "y": "1"}, true},
		{"cleared and there again", []update{{clear: true}}, 1, state{"a": "0"}, false},
		{"set after a clear", []update{{clear: true}, set("b", "1")}, 1, state{"b": "1"}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := history{base: state{"a": "0"}, sent: c.sent, acked: c.acked}
			err := h.verify(c.actual)
			if !c.ok {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, history{base: c.actual}, h)
		})
	}
}
