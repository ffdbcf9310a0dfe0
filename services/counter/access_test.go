package counter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/access/accesstest"
	"gotycoon/client/wire/counter/frame"
	"gotycoon/services"
	"gotycoon/services/counter"
)

func TestRights(t *testing.T) {
	name := frame.Args{Name: []byte("a"), Resources: 1, Maximum: 2}
	for rule, allowed := range map[string][]frame.Opcode{
		"allow anyone read":                                  {frame.Noop, frame.Get, frame.Stats},
		"allow anyone write service=counter":                 {frame.Noop, frame.Acquire},
		"allow anyone read,write service=lock":               {},
		"allow anyone read,write from=192.0.2.1":             {},
		"allow anyone read,write service=counter from=local": {frame.Noop, frame.Get, frame.Acquire, frame.Stats},
	} {
		_, addr := start(t, counter.Options{Options: services.Options{Access: accesstest.Guard(t, rule)}})
		p := dial(t, addr)
		for _, op := range []frame.Opcode{frame.Noop, frame.Acquire, frame.Get, frame.Stats, 0x55} {
			r := p.call(op, name)
			want := false
			for _, a := range allowed {
				want = want || a == op
			}
			switch {
			case op == 0x55 && len(allowed) > 0:
				require.Equal(t, frame.UnknownCommand, r.Status)
			case want:
				require.NotEqual(t, frame.Denied, r.Status, "%s: %x", rule, op)
			default:
				require.Equal(t, frame.Denied, r.Status, "%s: %x", rule, op)
				require.Contains(t, r.body, "access denied: ")
			}
		}
	}
}
