package gather

import (
	"runtime"
	"time"
)

// callers knows of those who are answered whether they soon come again. Callers in this process do,
// with an operation each, and it pays to let them in: otherwise the next group would have a few of
// them, and all others wait for it. Callers behind a network come when the next group is under way,
// so one half of all callers is always there when the other half is answered: then to wait for the
// other half is time lost for both.
type callers struct {
	missed  int // how often, one time after the other, one half did not come to the other
	skipped int // how often it was not waited for since
}

const (
	enoughMissed  = 4  // they do not come
	enoughSkipped = 32 // look again
)

// letIn lets callers in when some were answered, unless as many are there already and these would
// not come.
func (c *callers) letIn(answered int, waiting func() int) {
	before := waiting()
	half := 2*before >= answered
	if half && c.missed >= enoughMissed && c.skipped < enoughSkipped {
		c.skipped++
		return
	}
	letIn(waiting)
	if !half {
		return
	}
	c.skipped = 0
	if waiting()-before >= (answered+1)/2 {
		c.missed = 0
	} else {
		c.missed = min(c.missed+1, enoughMissed)
	}
}

// letIn lets other goroutines run, such as those of callers who have just been answered and come
// again. It returns when no more of them have come for some turns, which are nothing on an idle
// machine; on a busy one a turn is long, so there is a limit.
func letIn(waiting func() int) {
	const turns, limit = 8, 100 * time.Microsecond
	began, before := time.Now(), 0
	for left := turns; left > 0; left-- {
		runtime.Gosched()
		if n := waiting(); n > before {
			left, before = turns, n
		}
		if time.Since(began) > limit {
			return
		}
	}
}
