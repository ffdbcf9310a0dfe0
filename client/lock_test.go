package client_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// fakeLocks answers each line of one connection as told; an empty answer is silence.
func fakeLocks(t *testing.T, timeout time.Duration, answer func(line string) string) *client.Locks {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-ended })
	go func() {
		defer close(ended)
		socket, err := l.Accept()
		if err != nil {
			return
		}
		defer socket.Close()
		for lines := bufio.NewScanner(socket); lines.Scan(); {
			if _, err := io.WriteString(socket, answer(lines.Text())); err != nil {
				return
			}
		}
	}()
	return client.NewLocks(l.Addr().String(), client.Options{Timeout: timeout})
}

// Whoever waits for a lock a limited time does not wait for ever for a server that says nothing.
func TestALockServerThatSaysNothing(t *testing.T) {
	locks := fakeLocks(t, 50*time.Millisecond, func(string) string { return "" })
	begun := time.Now()
	_, err := locks.Acquire(t.Context(), "k", client.LockOptions{})
	require.ErrorIs(t, err, client.ErrNetwork)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(begun), 30*time.Second)
}

// What a server does not confirm is lost before it can be another's.
func TestALockThatIsNotConfirmedIsLost(t *testing.T) {
	renewals := 0
	locks := fakeLocks(t, 30*time.Second, func(line string) string {
		if strings.HasPrefix(line, "lock-fenced k 1 0 1") {
			return "GRANTED 1 0 k 1 7\n"
		}
		if renewals++; renewals <= 2 {
			return "RENEWED 1 0 k 1 7\n"
		}
		return ""
	})
	begun := time.Now()
	a, err := locks.Acquire(t.Context(), "k", client.LockOptions{TTL: time.Second})
	require.NoError(t, err)
	require.EqualValues(t, 7, a.Fence())
	<-a.Lost()
	require.ErrorContains(t, a.Err(), "not confirmed")
	require.Less(t, time.Since(begun), 10*time.Second)
	require.Error(t, a.Release(t.Context()))
}

// A lock that expires while it is released has not been released: the server tells both.
func TestALockThatExpiresInTheMomentOfItsRelease(t *testing.T) {
	for _, row := range []struct {
		told string
		want error
	}{
		{"RELEASED 0 0 k\n", nil},
		{"RENEWED 1 0 k 30 7\nRELEASED 0 0 k\n", nil},
		{"RELEASED 0 1 k\nEXPIRED 1 0 k\nNOT_RELEASED 1 0 k\n", client.ErrLockLost},
	} {
		locks := fakeLocks(t, 30*time.Second, func(line string) string {
			word, _, _ := strings.Cut(line, " ")
			return map[string]string{"lock-fenced": "GRANTED 1 0 k 30 7\n", "renew": "RENEWED 1 0 k 30 7\n",
				"release": row.told, "status": "STATUS 0 0 k\n"}[word]
		})
		a, err := locks.Acquire(t.Context(), "k", client.LockOptions{})
		require.NoError(t, err)
		require.ErrorIs(t, a.Release(t.Context()), row.want, row.told)
	}
}

func TestLocksOfAnotherServer(t *testing.T) {
	for _, answer := range []string{"INVALID_COMMAND\n", "NO_TOKEN 0 0 k\n", "GRANTED 1 0 k 30\n", "GRANTED 1 0 k 30 x\n", "\n"} {
		_, err := fakeLocks(t, 30*time.Second, func(string) string { return answer }).Acquire(t.Context(), "k", client.LockOptions{})
		require.ErrorContains(t, err, "lock server: ", answer)
		_, err = fakeLocks(t, 30*time.Second, func(string) string { return answer }).Status(t.Context(), "k")
		require.ErrorContains(t, err, "lock server: ", answer)
		_, err = fakeLocks(t, 30*time.Second, func(string) string { return answer }).List(t.Context(), "k")
		require.ErrorContains(t, err, "lock server: ", answer)
		err = fakeLocks(t, 30*time.Second, func(string) string { return answer }).Cancel(t.Context(), "k", "x")
		require.ErrorContains(t, err, "lock server: ", answer)
	}
	silent := fakeLocks(t, 50*time.Millisecond, func(string) string { return "" })
	_, err := silent.Status(t.Context(), "k")
	require.ErrorIs(t, err, client.ErrNetwork)
}
