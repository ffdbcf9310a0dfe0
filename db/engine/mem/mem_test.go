package mem_test

import (
	"testing"
	"testing/synctest"
	"time"

	"gotycoon/db/engine"
	"gotycoon/db/engine/enginetest"
	"gotycoon/db/engine/mem"
)

func open(o mem.Options) func(t *testing.T) func(addr string) engine.Engine {
	return func(*testing.T) func(addr string) engine.Engine {
		s := mem.New(o)
		return func(addr string) engine.Engine { return s.Server(addr) }
	}
}

func bubble(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) }

func TestEngine(t *testing.T) {
	enginetest.Run(t, enginetest.Place{Open: open(mem.Options{}), Run: bubble})
}

// Calls that take their time, and commits in another order than stamps, change nothing that the
// tests see.
func TestEngineThatIsSlow(t *testing.T) {
	slow := mem.Options{Faults: mem.Seeded(1, mem.Rates{Delay: 0.5, Longest: time.Millisecond})}
	enginetest.Run(t, enginetest.Place{Open: open(slow), Run: bubble})
}
