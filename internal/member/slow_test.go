package member_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
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
		require.EqualError(t, err, "the other server has proved nothing within 10s")
		require.LessOrEqual(t, <-sent, member.Limit+time.Second)
	})
}

// A member with another secret comes again every few seconds, for days.
func TestTheSameRefusalIsToldOnceAMinute(t *testing.T) {
	ours, theirs := secrets(t, secret), secrets(t, other)
	synctest.Test(t, func(t *testing.T) {
		var log text
		a := member.Acceptor{Secrets: ours, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		try := func(host byte, name string) {
			here, there := net.Pipe()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, err := member.Dial(context.Background(), "a", member.Options{
					Secrets: theirs, Kind: frame.MemberCluster, Name: name,
					Dial: func(context.Context, string, string) (net.Conn, error) { return there, nil },
				})
				require.Error(t, err)
			}()
			in := netio.New(here, netio.NewPool(), netio.Options{Timeout: time.Minute})
			require.NoError(t, in.WaitByte())
			_, err := a.Accept(in, &net.TCPAddr{IP: net.IPv4(127, 0, 0, host), Port: 1}, nil)
			require.ErrorContains(t, err, "does not know the secret")
			here.Close()
			<-ended
		}
		for range 100 {
			try(1, "b")
			<-time.After(2 * time.Second)
		}
		require.Equal(t, 4, strings.Count(log.String(), "127.0.0.1:1"), log.String())
		require.Contains(t, log.String(), "(29 times more in the last 1m0s)")
		try(2, "b")
		try(1, "c")
		require.Contains(t, log.String(), "127.0.0.2:1")
		require.Contains(t, log.String(), `says that it is \"c\"`)
	})
}
