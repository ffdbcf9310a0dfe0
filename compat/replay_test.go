package compat

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A replay must be able to find a difference. These tests replay cases against a fake server, which
// gives right and wrong answers.

// fakeServer answers each request line with the bytes in answers, and closes the connection behind
// an answer that begins with "!". It is silent for other lines.
func fakeServer(t *testing.T, answers map[string]string) *runner {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go answerLines(c, answers)
		}
	}()
	return &runner{addr: ln.Addr().String(), port: ln.Addr().(*net.TCPAddr).Port}
}

func answerLines(c net.Conn, answers map[string]string) {
	defer c.Close()
	lines := bufio.NewReader(c)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		answer, end := strings.CutPrefix(answers[strings.TrimSpace(line)], "!")
		if _, err := io.WriteString(c, answer); err != nil || end {
			return
		}
	}
}

func response(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d X\r\nServer: s\r\nDate: now\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// exchange is a step that sends a line and expects an answer.
func exchange(line, want string) goldenStep {
	send, recv := latin1(line+"\n"), latin1(want)
	return goldenStep{C: "A", Send: &send, Recv: &recv}
}

func httpExchange(line, want string) goldenStep {
	s := exchange(line, want)
	s.Status = 200
	return s
}

func mode(s goldenStep, cmp string) goldenStep { s.Cmp = cmp; return s }

func closing(s goldenStep) goldenStep { s.EOF = true; return s }

func TestReplayFindsDifferences(t *testing.T) {
	rows, otherRows := response(200, "a\t1\nnum\t2\n"), response(200, "a\t9\nnum\t2\n")
	cases := []struct {
		name   string
		answer string
		steps  []goldenStep
		same   bool
	}{
		{"same bytes", "abc", []goldenStep{exchange("x", "abc")}, true},
		{"other bytes", "abd", []goldenStep{exchange("x", "abc")}, false},
		{"too many bytes at the end", "abcd", []goldenStep{exchange("x", "abc")}, false},
		{"too many bytes before another answer", "abcd", []goldenStep{exchange("x", "abc"), exchange("x", "abcd")}, false},
		{"bytes where none are expected", "a", []goldenStep{exchange("x", "")}, false},
		{"silence", "", []goldenStep{exchange("x", "")}, true},
		{"close as expected", "!abc", []goldenStep{closing(exchange("x", "abc"))}, true},
		{"unexpected close", "!abc", []goldenStep{exchange("x", "abc")}, false},
		{"unexpected close before a close", "!", []goldenStep{exchange("x", ""), closing(exchange("x", ""))}, false},
		{"another date and server", response(200, "b"),
			[]goldenStep{httpExchange("x", strings.ReplaceAll(response(200, "b"), "Date: now", "Date: then"))}, true},
		{"another status", response(404, "b"), []goldenStep{httpExchange("x", response(200, "b"))}, false},
		{"values under keys", rows, []goldenStep{mode(httpExchange("x", otherRows), "keys")}, true},
		{"a missing row under keys", rows, []goldenStep{mode(httpExchange("x", response(200, "a\t1\n")), "keys")}, false},
		{"another head under keys", rows, []goldenStep{mode(httpExchange("x", response(201, "a\t1\nnum\t2\n")), "keys")}, false},
		{"values under rows:n", rows, []goldenStep{mode(httpExchange("x", otherRows), "rows:n")}, true},
		{"values under rows:a", rows, []goldenStep{mode(httpExchange("x", otherRows), "rows:a")}, false},
		{"ranks under set", rows, []goldenStep{mode(httpExchange("x", otherRows), "set")}, true},
		{"another num under set", rows, []goldenStep{mode(httpExchange("x", response(200, "a\t1\nnum\t1\n")), "set")}, false},
		{"another answer under walk", rows, []goldenStep{mode(httpExchange("x", otherRows), "walk")}, false},
		{"an unknown mode", rows, []goldenStep{mode(httpExchange("x", rows), "no such mode")}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := fakeServer(t, map[string]string{"x": c.answer})
			difference := r.run(&goldenCase{Name: c.name, Steps: c.steps}) + r.surplus()
			require.Equal(t, c.same, difference == "", "difference: %q", difference)
		})
	}
}

// Answers of a group may come in any order.
func TestReplayGroups(t *testing.T) {
	one, two := response(200, "1"), response(200, "2")
	r := fakeServer(t, map[string]string{"x": one, "y": two})
	group := func(cmp, first, second string) *goldenCase {
		return &goldenCase{Steps: []goldenStep{
			mode(httpExchange("x", first), cmp), mode(httpExchange("y", second), cmp),
		}}
	}
	require.Empty(t, r.run(group("walk", two, one)))
	require.NotEmpty(t, r.run(group("walk", two, two)))
	require.Empty(t, r.run(group("status-one-of", two, two)))
	require.NotEmpty(t, r.run(group("status-one-of", two, response(404, "2"))))
}

func TestTokens(t *testing.T) {
	k := clock{now: 1_800_000_000, port: 1978}
	require.Equal(t, "1800000010 Fri, 15 Jan 2027 08:00:00 GMT 2027-01-15T07:59:59Z 1978",
		k.expand("@T+10@ @HTTPDATE+0@ @W3C-1@ @PORT@"))
	require.Equal(t, "\x00\x00\x00\x00\x6b\x49\xd2\x01", k.expand("@BE8+1@"))
	require.Equal(t, "\xff\xff\xff\xff\x94\xb6\x2d\xff", k.expand("@NBE8+1@"))

	cases := []struct {
		want, got string
		match     bool
	}{
		{"a@T+1@b", "a1800000002b", true},
		{"a@T+1@b", "a1800000005b", false},
		{"a@T+1@b", "a180000000b", false},
		{"a@T+1@b", "a1800000001", false},
		{"@BE8+0@", "\x00\x00\x00\x00\x6b\x49\xd2\x03", true},
		{"@BE8+0@", "\x00\x00\x00\x00\x6b\x49\xd2\x04", false},
		{"@BE8+0@", "\x00\x00\x00", false},
		{"@TS8@x", "12345678x", true},
		{"@TS8@x", "1234567x", false},
		{"@HTTPDATE+0@", "Fri, 15 Jan 2027 08:00:02 GMT", true},
		{"@HTTPDATE+0@", "Fri, 15 Jan 2027 08:00:04 GMT", false},
		{"@HTTPDATE+0@", "Fri, 15 Jan 2027 08:00 GMT     ", false},
		{":@PORT@/", ":1978/", true},
		{":@PORT@/", ":1979/", false},
		{"x@DATE@y", "x@DATE@y", true},
	}
	for _, c := range cases {
		require.Equal(t, c.match, k.match(c.want, c.got), "%q and %q", c.want, c.got)
	}
}

// A request sent in pieces arrives whole.
func TestSplit(t *testing.T) {
	r := fakeServer(t, map[string]string{"a long line": "ok"})
	s := exchange("a long line", "ok")
	s.Split, s.GapMS = 3, 1
	require.Empty(t, r.run(&goldenCase{Steps: []goldenStep{s}}))
}
