package replication

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/ulog"
)

// A client that watches a member which follows is told the stamps of the primary's log, and begins
// with the member's position there.
func TestAWatchIsToldTheStampsOfPrimaries(t *testing.T) {
	o, err := outsider(t, frame.Follow{TS: 300}, false, 0)
	require.NoError(t, err)
	s := o.source
	s.opts.Position = func() (ulog.Stamp, bool) { return 305, true }
	log := s.opts.Log
	append1 := func(key string, origin ulog.Origin) {
		at, err := log.AppendReplicated([]ulog.Update{{Op: ulog.OpRemove, Key: []byte(key), Origin: origin}}, nil)
		require.NoError(t, err)
		require.NoError(t, log.Wait(at))
	}
	append1("before", ulog.Origin{Log: 7, Stamp: 305})
	w, err := s.Watch(0, true, 0, ofServer, nil)
	require.NoError(t, err)
	defer w.Close()
	require.Equal(t, ulog.Stamp(305), w.At())
	append1("after", ulog.Origin{Log: 7, Stamp: 310})
	var told []ulog.Stamp
	require.NoError(t, w.Each(func(e ulog.Entry) error { told = append(told, e.Stamp); return nil }))
	require.Equal(t, []ulog.Stamp{310}, told)
	require.Equal(t, ulog.Stamp(310), w.At(), "a member that follows promises nothing beyond")

	_, err = s.Watch(299, false, 0, ofServer, nil)
	require.ErrorIs(t, err, ErrCopied)
	s.opts.Follows = func() uint64 { return 0 }
	_, err = s.Watch(0, true, 0, ofServer, nil)
	require.ErrorIs(t, err, errUndecided)
}
