package forward

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/access"
	"gotycoon/client/wire/frame"
)

// The client hears why the primary was not reached, not that the last of several tries was cut
// short when the time for all of them was over.
func TestTheReasonIsToldNotTheEnd(t *testing.T) {
	tries := 0
	f := &Forwarder{opts: Options{
		Wait:    time.Minute,
		Primary: func() (string, bool) { return "somewhere:1", true },
		Dial: func(context.Context, string, frame.MemberKind, *access.Client) (net.Conn, error) {
			tries++
			if tries == 1 {
				return nil, &net.OpError{Op: "dial", Err: os.ErrPermission}
			}
			return nil, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded} // which ends the tries
		},
	}}
	_, _, err := f.connect(t.Context(), frame.MemberData, nil)
	require.Equal(t, 2, tries)
	require.ErrorIs(t, err, os.ErrPermission)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}
