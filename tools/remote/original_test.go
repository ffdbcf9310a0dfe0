package remote_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// original is a peer that says what a server of the original (0.9.56) has said to migrate -switch:
// testdata/original-migrate.jsonl has its replies in their order, byte for byte. The recording was
// made by a proxy between ktremotemgr and the original, with the databases one.kct and two.kch of
// 33 and 32 records. When the copy of two.kch began, the proxy made five updates, so that some of
// them are behind the cursor of the copy.
//
// The replies of a cursor belong to its jump. A reply that was the last one is given again, and so
// is the last heartbeat of the log.
type original struct {
	mu      sync.Mutex
	replies map[string][][]byte   // by path and parameters
	steps   map[string][][]byte   // of the present cursor, by database
	jumps   map[string][][][]byte // of all cursors, by database
	log     []byte
}

const (
	jump = "/rpc/cur_jump"
	step = "/rpc/cur_get"
)

// database returns the row of the parameters that names the database.
func database(params string) string {
	_, name, _ := strings.Cut(params, "DB\t")
	name, _, _ = strings.Cut(name, "\n")
	return name
}

// startOriginal starts the peer, and returns its address.
func startOriginal(t *testing.T) (addr string) {
	t.Helper()
	o := &original{replies: map[string][][]byte{}, steps: map[string][][]byte{}, jumps: map[string][][][]byte{}}
	f, err := os.Open("testdata/original-migrate.jsonl")
	require.NoError(t, err)
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var line struct {
			Ask   string
			Reply []byte
		}
		err := d.Decode(&line)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		path, params, _ := strings.Cut(line.Ask, "\n")
		switch db := database(params); {
		case line.Ask == "b1":
			o.log = line.Reply
		case path == step:
			last := len(o.jumps[db]) - 1
			o.jumps[db][last] = append(o.jumps[db][last], line.Reply)
		case path == jump:
			o.jumps[db] = append(o.jumps[db], [][]byte{})
			fallthrough
		default:
			o.replies[line.Ask] = append(o.replies[line.Ask], line.Reply)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	serving.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			serving.Go(func() { defer c.Close(); o.serve(c) })
		}
	})
	return l.Addr().String()
}

// serve answers the requests of a connection. The original closes it when it does not know a
// request.
func (o *original) serve(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		first, err := in.Peek(1)
		switch {
		case err != nil:
			return
		case first[0] == 0xB1:
			o.feed(c, in)
			return
		case first[0] != 'P':
			return
		}
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		if _, err := c.Write(o.reply(r.URL.Path, string(body))); err != nil {
			return
		}
	}
}

// feed sends the log, and its last heartbeat again and again.
func (o *original) feed(c net.Conn, in io.Reader) {
	const request, heartbeat = 15, 9
	_, _ = io.CopyN(io.Discard, in, request)
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = io.Copy(io.Discard, in) }() // acknowledgements
	_, err := c.Write(o.log)
	for beat := o.log[len(o.log)-heartbeat:]; err == nil; _, err = c.Write(beat) {
		select {
		case <-ended:
			return
		case <-time.After(time.Millisecond):
		}
	}
	<-ended
}

// reply returns the next reply to a request.
func (o *original) reply(path, params string) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := func(list *[][]byte) []byte {
		if len(*list) == 0 {
			return []byte("HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\n\r\n")
		}
		reply := (*list)[0]
		if len(*list) > 1 {
			*list = (*list)[1:]
		}
		return reply
	}
	db := database(params)
	switch path {
	case step:
		list := o.steps[db]
		defer func() { o.steps[db] = list }()
		return next(&list)
	case jump:
		if cursors := o.jumps[db]; len(cursors) > 0 {
			o.steps[db] = cursors[0]
			if len(cursors) > 1 {
				o.jumps[db] = cursors[1:]
			}
		}
	case "/rpc/checksum", "/rpc/ulog_reach":
		params = ""
	}
	list := o.replies[path+"\n"+params]
	defer func() { o.replies[path+"\n"+params] = list }()
	return bytes.Clone(next(&list))
}
