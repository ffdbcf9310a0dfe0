package httpapi_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/httpapi"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
)

// While an update is being synced (-oas), every procedure and verb that reads its record must reply
// after the sync only. Requests for other records must be answered meanwhile.
func TestNoReplyTellsWhatIsNotSafe(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	s := newServerWith(t, db.Options{LogDir: t.TempDir(), SyncEach: true, FS: fs}, httpapi.Options{}, "%")
	others := []string{"other", "another", "a third"}
	for _, key := range others {
		s.dial(t).ok("set", "key", key, "value", "1")
	}
	syncing, goOn := make(chan struct{}, 100), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release) // also when the test fails: closing waits for the log
	fs.OnSync(func() {
		syncing <- struct{}{}
		<-goOn
	})
	writer := s.dial(t).send(rpc("set", "key", "order", "value", "paid"))
	<-syncing
	requests := []string{
		rpc("get", "key", "order"), rpc("check", "key", "order"), rpc("get_bulk", "_order", ""), rpc("get_bulk", "_order", "", "atomic", ""),
		rpc("add", "key", "order", "value", "x"), rpc("cas", "key", "order", "oval", "due", "nval", "x"), rpc("increment", "key", "order", "num", "1"),
		rpc("match_prefix", "prefix", "ord"), rpc("match_regex", "regex", "ord"), rpc("match_similar", "origin", "orde"),
		rpc("cur_jump", "CUR", "1"), rpc("cur_jump_back", "CUR", "1"), rpc("status"), rpc("checksum"),
		"GET /order HTTP/1.1\r\n\r\n", "HEAD /order HTTP/1.1\r\n\r\n",
		"PUT /order HTTP/1.1\r\nX-Kt-Mode: add\r\nContent-Length: 1\r\n\r\nx",
	}
	clients := []*client{writer}
	for _, request := range requests {
		clients = append(clients, s.dial(t).send(request))
	}
	answered := make(chan *client, len(others))
	for _, key := range others {
		c := s.dial(t).send(rpc("get", "key", key))
		go func() {
			if _, err := c.in.Peek(1); err == nil {
				answered <- c
			}
		}()
	}
	select { // a key that shares its lock with the one being stored waits; hardly all of these do
	case c := <-answered:
		require.Equal(t, "value\t1\n", c.receive(false).body)
	case <-time.After(time.Minute):
		require.Fail(t, "nobody is answered")
	}
	require.Contains(t, s.dial(t).ok("report"), "db_0\t", "figures do not wait")
	for i, c := range clients {
		if i > 0 {
			t.Log(requests[i-1])
		}
		c.requireSilent()
	}
	release()
	for i, c := range clients {
		require.NotEmpty(t, c.receive(i > 0 && requests[i-1][:4] == "HEAD").status)
	}
}

// An update that sends a signal is being synced (-oas). The session that waits for the signal must
// be woken after the sync only.
func TestNoSignalTellsWhatIsNotSafe(t *testing.T) {
	fs := faultfs.New(vfs.OS{})
	s := newServerWith(t, db.Options{LogDir: t.TempDir(), SyncEach: true, FS: fs}, httpapi.Options{}, "%")
	syncing, goOn := make(chan struct{}, 100), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release) // also when the test fails: closing waits for the log
	fs.OnSync(func() {
		syncing <- struct{}{}
		<-goOn
	})
	waiter := s.dial(t).send(rpc("void", "WAIT", "paid", "WAITTIME", "30"))
	eventually(t, s.signals, "paid", 1)
	writer := s.dial(t).send(rpc("set", "key", "order", "value", "paid", "SIGNAL", "paid"))
	<-syncing
	waiter.requireSilent()
	require.Equal(t, 1, s.signals.Waiting("paid"))
	release()
	require.Equal(t, "200 OK", waiter.receive(false).status)
	require.Equal(t, "SIGNALED\t1\n", writer.receive(false).body)
}
