package netio_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

var errUnconfirmed = errors.New("no follower")

// unreachable confirms nothing, after the request has been asked for.
type unreachable struct{}

func (unreachable) Required() int                            { return 1 }
func (unreachable) Confirmed(usual, asked int) ulog.Stamp    { return 0 }
func (unreachable) Admits(usual, asked int) error            { return nil }
func (unreachable) WaitConfirmed(ulog.Stamp, int, int) error { return errUnconfirmed }

// serveWords serves requests of one byte on a connection. An upper case letter stores something and
// owes it to other servers, a lower case letter owes nothing; m asks for no reply and owes; f sends
// what there is in the middle of an owing reply; w confirms before it answers.
func serveWords(c *netio.Conn, log *ulog.Log) {
	for c.WaitByte() == nil {
		b := c.Buffered()[0]
		c.Advance(1)
		owes := func() {
			at, _ := log.Append([]ulog.Update{{Op: ulog.OpSet, Key: []byte{b}}})
			c.Owed.Add(log, at, at, -1)
		}
		reply := fmt.Sprintf("<%c>", b)
		switch {
		case b == 'm':
			owes()
			reply = ""
		case b == 'f':
			owes()
			c.Out = append(c.Out, "<part"...)
			if c.Flush() != nil {
				return
			}
		case b == 'w':
			owes()
			if unconfirmed, err := c.Confirm(); unconfirmed {
				reply = "<" + err.Error() + " w>"
			} else if err != nil {
				return
			}
		case b < 'a':
			owes()
		}
		c.Out = append(c.Out, reply...)
		if c.Owes() {
			silent := c.Silent()
			c.Answered(func(dst []byte, err error) []byte {
				if silent {
					return dst
				}
				return fmt.Appendf(dst, "<%v %c>", err, b)
			})
		}
	}
}

func TestRepliesThatAreNotConfirmedAreReplaced(t *testing.T) {
	for requests, want := range map[string]string{
		"ab":     "<a><b>",
		"A":      "<no follower A>",
		"aBc":    "<a><no follower B><c>",
		"ABcD":   "<no follower A><no follower B><c><no follower D>",
		"ama":    "<a><a>",
		"mAa":    "<no follower A><a>",
		"aAfb":   "<a><no follower A>", // the connection ends: a part of the reply to f may be gone
		"aAwb":   "<a><no follower A><no follower w><b>",
		"wA":     "<no follower w><no follower A>",
		"awBmwA": "<a><no follower w><no follower B><no follower w><no follower A>",
	} {
		t.Run(requests, func(t *testing.T) {
			onBoth(t, func(t *testing.T, p pair) {
				log, err := ulog.Open(t.TempDir(), ulog.Options{})
				require.NoError(t, err)
				defer log.Close()
				log.SetConfirmer(unreachable{}, true)
				server, client := p(t)
				c := newConn(server, time.Minute)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					serveWords(c, log)
					c.Close()
					server.Close()
				}()
				_, err = io.WriteString(client, requests)
				require.NoError(t, err)
				got := make([]byte, len(want))
				_, err = io.ReadFull(client, got)
				require.NoError(t, err, "%s", got)
				require.Equal(t, want, string(got))
				client.Close()
				<-ended
			})
		})
	}
}

// TestRepliesAfterAReplacement: a connection on which a reply was replaced goes on as before.
func TestRepliesAfterAReplacement(t *testing.T) {
	log, err := ulog.Open(t.TempDir(), ulog.Options{})
	require.NoError(t, err)
	defer log.Close()
	log.SetConfirmer(unreachable{}, true)
	server, client := sockets(t)
	c := newConn(server, time.Minute)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serveWords(c, log)
		c.Close()
	}()
	for range 3 {
		// The reply to m is empty, so the request behind it comes with it, or a moment later.
		for request, want := range map[string]string{"A": "<no follower A>", "b": "<b>", "m": "", "w": "<no follower w>"} {
			require.NoError(t, client.SetDeadline(time.Now().Add(time.Minute)))
			_, err = io.WriteString(client, request)
			require.NoError(t, err)
			got := make([]byte, len(want))
			_, err = io.ReadFull(client, got)
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		}
	}
	client.Close()
	<-ended
}
