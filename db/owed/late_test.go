package owed

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// commit is a Late that counts its calls.
type commit struct {
	calls int
	err   error
}

func (c *commit) Finish(*Pending) error { c.calls++; return c.err }

func TestACommitThatWasPutOffIsMadeBeforeTheWait(t *testing.T) {
	var p Pending
	a, b, c := &commit{}, &commit{err: errors.New("b")}, &commit{err: errors.New("c")}
	require.Equal(t, Nothing, p.Waiting())
	p.Defer(a)
	p.Defer(a)
	require.Equal(t, Log, p.Waiting())
	require.NoError(t, p.WaitLogs())
	require.Equal(t, 1, a.calls)
	require.Equal(t, Nothing, p.Waiting())
	for _, l := range []Late{a, b, c, a} {
		p.Defer(l)
	}
	require.Equal(t, b.err, p.Wait(), "the first failure counts")
	require.Equal(t, 3, a.calls, "the others share their commits with other clients")
	require.Equal(t, []int{1, 1}, []int{b.calls, c.calls})
	require.NoError(t, p.Wait())
	p.Defer(b)
	p.Forget()
	require.NoError(t, p.Wait())
	require.Equal(t, 1, b.calls)
}
