//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequests(t *testing.T) {
	s := shot{conn: 3, number: 1, random: keySpace + 42}
	x := strings.Repeat("x", valueSize)
	for want, p := range map[string]protocol{
		"PUT /key42 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n" + x: httpSet(smallKeys),
		"GET /key42 HTTP/1.1\r\nHost: localhost\r\n\r\n":                            httpGet(smallKeys),
		"*3\r\n$3\r\nSET\r\n$5\r\nkey42\r\n$100\r\n" + x + "\r\n":                   redisSet(),
		"*2\r\n$3\r\nGET\r\n$5\r\nkey42\r\n":                                        redisGet(),
		"get key42\r\n":                                                             memcachedGet(smallKeys),
		"release key-3\n":                                                           lockTurns(),
	} {
		require.Equal(t, want, string(p.request(nil, s)))
	}
}

// A reply is whole with its last byte and no sooner, and a wrong one is an error as soon as it is
// known to be wrong.
func TestReplies(t *testing.T) {
	x := strings.Repeat("x", valueSize)
	for reply, p := range map[string]protocol{
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nServer: a\r\n\r\n" + x: httpGet(smallKeys),
		"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n":               httpSet(smallKeys),
		"HTTP/1.1 204 No Content\r\n\r\n":                                 httpSet(smallKeys),
		"+OK\r\n":                                                         redisSet(),
		"$100\r\n" + x + "\r\n":                                           redisGet(),
		"VALUE key42 0 100\r\n" + x + "\r\nEND\r\n":                       memcachedGet(smallKeys),
		"GRANTED 1 0 key-3 120\n":                                         lockTurns(),
	} {
		for i := range len(reply) {
			size, err := p.reply([]byte(reply[:i]))
			require.NoError(t, err, "%q", reply[:i])
			require.Zero(t, size, "%q", reply[:i])
		}
		size, err := p.reply([]byte(reply))
		require.NoError(t, err)
		require.Equal(t, len(reply), size)
	}
	for reply, p := range map[string]protocol{
		"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n": httpGet(smallKeys),
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n":        httpGet(smallKeys),
		"-ERR":      redisSet(),
		"$-1\r\n":   redisGet(),
		"END\r\n":   memcachedGet(smallKeys),
		"ERROR\r\n": memcachedGet(smallKeys),
	} {
		_, err := p.reply([]byte(reply))
		require.Error(t, err, "%q", reply)
	}
}
