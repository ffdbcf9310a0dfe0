//go:build linux

package main

import (
	"bufio"
	"math"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
)

// answering returns a connection whose other end answers each request with the next of answers, a
// byte at a time.
func answering(t *testing.T, answers ...[]byte) net.Conn {
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer theirs.Close()
		request := make([]byte, 1<<10)
		for _, answer := range answers {
			if _, err := theirs.Read(request); err != nil {
				return
			}
			for i := range answer {
				if _, err := theirs.Write(answer[i : i+1]); err != nil {
					return
				}
			}
		}
	}()
	t.Cleanup(func() {
		ours.Close()
		<-done
	})
	return ours
}

func TestAskersReadWhatServersAnswer(t *testing.T) {
	hit := frame.AppendReply(nil, frame.GetBulk, 1)
	hit = frame.AppendRecord(hit, frame.Record{Key: key(7), Value: []byte("value"), XT: math.MaxInt64})
	gotycoon := answering(t, frame.AppendReply(nil, frame.SetBulk, 1), hit, frame.AppendReply(nil, frame.GetBulk, 0))
	redis := answering(t, []byte("+OK\r\n"), []byte("$5\r\nvalue\r\n"), []byte("$-1\r\n"), []byte("-READONLY\r\n"))
	for name, a := range map[string]asker{
		"gotycoon": &gotycoonAsker{conn: gotycoon, in: bufio.NewReader(gotycoon), key: key(7)},
		"redis":    redisAsker{redis, bufio.NewReader(redis)},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, a.set("value"))
			for _, want := range []string{"value", ""} {
				got, err := a.get()
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			require.Error(t, a.set("refused, or the connection has ended"))
		})
	}
}
