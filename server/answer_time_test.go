package server_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/server"
)

// A search that would take hours ends with its time, and with its client.
func TestExpensiveSearchesEnd(t *testing.T) {
	s := start(t, func(c *server.Config) { c.Limits.AnswerTime = 300 * time.Millisecond })
	c := s.dial()
	long := strings.Repeat("a", 200<<10)
	post := func(name, body string) (status int, text string) {
		c.send("POST /rpc/" + name + " HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: " +
			strconv.Itoa(len(body)) + "\r\n\r\n" + body)
		return c.reply()
	}
	for n := range 8 {
		status, text := post("set", "value=x&key="+strconv.Itoa(n)+long)
		require.Equal(t, 200, status, text)
	}
	begun := time.Now()
	status, text := post("match_similar", "range=200000&origin="+strings.Repeat("b", 5<<10))
	require.Equal(t, 503, status, text)
	require.Contains(t, text, "ERROR\tthe request has taken too long (-answer-time)")
	require.Less(t, time.Since(begun), patience)
	status, _ = c.get("/rpc/void")
	require.Equal(t, 200, status, "the connection goes on")
}
