package upgrade

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// follows are the options of a slave.
func follows(master, slave *node) []string {
	return []string{"-mhost", "127.0.0.1", "-mport", strconv.Itoa(master.port), "-rts", fmt.Sprint(slave.sid, ".rts")}
}

// pairAndBack: the slave goes first, and takes over; then the former master goes, as its slave. So
// each version has been the master of the other.
func pairAndBack(t *testing.T, v versions) {
	dir := t.TempDir()
	master, slave := newNode(t, dir, 1), newNode(t, dir, 2)
	master.start(v.old, "-rts", "1.rts")
	slave.start(v.old, append(follows(master, slave), "-slave-read-only")...)
	l := startLoad(t, master, slave)
	for _, step := range []struct{ program, to string }{{v.present, "to the new version"}, {v.old, "back to the old version"}} {
		slave.caughtUp(master)
		slave.stop()
		slave.start(step.program, append(follows(master, slave), "-slave-read-only")...)
		slave.caughtUp(master)
		t.Logf("the slave %s: no answer for %v at most", step.to, l.longest())

		// Nothing is acknowledged by the master when the first call has returned.
		ctx := t.Context()
		require.NoError(t, master.c.SetReadOnly(ctx, true))
		eventually(t, func() bool { return maps.Equal(master.contents(), slave.contents()) }, "the slave does not catch up")
		require.NoError(t, slave.c.TuneReplication(ctx, client.Master{}))
		require.NoError(t, slave.c.SetReadOnly(ctx, false))
		t.Logf("the takeover %s: no answer for %v at most", step.to, l.longest())

		master.stop()
		master, slave = slave, master
		slave.start(step.program, append(follows(master, slave), "-slave-read-only")...)
		slave.caughtUp(master)
		t.Logf("the former master %s: no answer for %v at most", step.to, l.longest())
	}
	l.check()
}
