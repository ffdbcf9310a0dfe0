package member_test

import (
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/binproto/frame"
	"gotycoon/internal/member"
	"gotycoon/internal/netio"
)

// An opener that sends a byte now and then is cut off, though it never keeps the server waiting for
// long.
func TestASlowOpenerIsCutOff(t *testing.T) {
	shared := secrets(t, secret)
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		began := time.Now()
		sent := make(chan time.Duration, 1)
		go func() {
			for _, b := range frame.AppendMemberOpening(nil, frame.MemberOpening{Version: 1, Name: "slow"}) {
				if _, err := there.Write([]byte{b}); err != nil {
					break
				}
				<-time.After(time.Second)
			}
			sent <- time.Since(began)
		}()
		in := netio.New(here, netio.NewPool(), netio.Options{Timeout: time.Minute})
		require.NoError(t, in.WaitByte())
		a := member.Acceptor{Secrets: shared, Logger: slog.New(slog.DiscardHandler)}
		_, err := a.Accept(in, here.RemoteAddr(), nil)
		require.ErrorIs(t, err, io.ErrClosedPipe)
		require.LessOrEqual(t, <-sent, member.Limit+time.Second)
	})
}
