package memcache

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
)

// The original's commands are replayed by package compat; here is what modern servers have besides.
func TestModernCommands(t *testing.T) {
	for _, row := range []struct{ name, sent, want string }{
		{"flags are kept", "set a 7 0 1\nx\nget a\n", "STORED\nVALUE a 7 1\nx\nEND\n"},
		{"append and prepend keep the flags", "set a 7 0 1\nx\nappend a 1 0 1\ny\nprepend a 2 0 1\nw\nget a\n",
			"STORED\nSTORED\nSTORED\nVALUE a 7 3\nwxy\nEND\n"},
		{"append to nothing", "append z 0 0 1\nx\nprepend z 0 0 1\ny\n", "NOT_STORED\nNOT_STORED\n"},
		{"noreply", "append z 0 0 1 noreply\nx\ncas z 0 0 1 1 noreply\ny\ntouch z 1 noreply\nverbosity 1 noreply\n" +
			"flush_all 0 noreply\nmn\n", "MN\n"},
		{"cas of nothing, or nonsense", "cas z 0 0 1 5\nx\nset a 0 0 1\nx\ncas a 0 0 1 x\ny\ncas a 0 0 1\n",
			"NOT_FOUND\nSTORED\nEXISTS\nCLIENT_ERROR invalid parameters\n"},
		{"touch", "touch a 10\nset a 0 0 1\nx\ntouch a 10\ntouch a -1\nget a\n", "NOT_FOUND\nSTORED\nTOUCHED\nTOUCHED\nEND\n"},
		{"gat", "set a 3 0 1\nx\ngat 10 a z a\ngat -1 a\nget a\n",
			"STORED\nVALUE a 3 1\nx\nVALUE a 3 1\nx\nEND\nVALUE a 3 1\nx\nEND\nEND\n"},
		{"a negative time has passed", "set a 0 -1 1\nx\nget a\n", "STORED\nEND\n"},
		{"incr is unsigned and wraps", "set a 5 0 20\n18446744073709551615\nincr a 2\nget a\n",
			"STORED\n1\nVALUE a 5 1\n1\nEND\n"},
		{"decr stops at 0", "set a 0 0 2\n10\ndecr a 3\ndecr a 8\n", "STORED\n7\n0\n"},
		{"what cannot be counted", "set a 0 0 1\nx\nincr a 1\nincr a -1\nincr a 18446744073709551616\nincr z 1\n", "STORED\n" +
			"CLIENT_ERROR cannot increment or decrement non-numeric value\nCLIENT_ERROR invalid numeric delta argument\n" +
			"CLIENT_ERROR invalid numeric delta argument\nNOT_FOUND\n"},
		{"bad commands", "get\ndelete a b c d\nverbosity\nverbosity a b c\nflush_all x\nstats nosuch\n", "ERROR\n" +
			"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\nCLIENT_ERROR invalid parameters\nERROR\n" +
			"CLIENT_ERROR bad command line format\nERROR\n"},
		{"stats families", "stats items\nstats slabs\nstats reset\nverbosity 1\n", "END\nEND\nRESET\nOK\n"},
		{"flush_all now and later", "set a 0 0 1\nx\nflush_all 1000\nget a\nflush_all\nget a\n",
			"STORED\nOK\nVALUE a 0 1\nx\nEND\nOK\nEND\n"},
		{"version", "version\n", "VERSION 1.6.18-KyotoTycoon/0.9.56b\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := start(t, "opts=f", ":")
			s.dial(t).ask(row.sent, row.want)
		})
	}
}

func TestFlushAllAfterADelay(t *testing.T) {
	s := start(t, "opts=f", ":")
	c := s.dial(t)
	c.ask("set a 0 0 1\nx\nflush_all 3\nget a\n", "STORED\nOK\nVALUE a 0 1\nx\nEND\n")
	require.Eventually(t, func() bool {
		_, _, err := s.db.Get(nil, nil, []byte("a"))
		return err != nil
	}, patience, 10*time.Millisecond)
	c.ask("flush_all 1000\n", "OK\n") // its timer ends with the service
}

// unique returns the version that gets shows.
func (c *client) unique(key string) string {
	c.t.Helper()
	c.send("gets %s\r\n", key)
	words := strings.Fields(c.line())
	require.Len(c.t, words, 5)
	c.line()
	c.expect("END\r\n")
	return words[4]
}

func TestEveryUpdateChangesTheUnique(t *testing.T) {
	s := start(t, "opts=f", "%")
	c := s.dial(t)
	c.ask("set a 0 0 1\n5\n", "STORED\n")
	seen := map[string]bool{}
	for name, update := range map[string]func(){
		"set":     func() { c.ask("set a 0 0 1\n5\n", "STORED\n") },
		"incr":    func() { c.ask("incr a 0\n", "5\n") },
		"append":  func() { c.ask("append a 0 0 0\n\n", "STORED\n") },
		"touch":   func() { c.ask("touch a 0\n", "TOUCHED\n") },
		"replace": func() { c.ask("replace a 0 0 1\n5\n", "STORED\n") },
		"another": func() { require.NoError(t, s.db.Set(nil, []byte("a"), []byte("5\x00\x00\x00\x00"), record.Never)) },
		"bulk": func() {
			_, err := s.db.SetBulk(nil, []db.Record{{Key: []byte("a"), Value: []byte("5"), XT: record.Never}}, true)
			require.NoError(t, err)
		},
		"anew": func() { c.ask("flush_all\nset a 0 0 1\n5\n", "OK\nSTORED\n") },
	} {
		before := c.unique("a")
		require.False(t, seen[before], name)
		require.Equal(t, before, c.unique("a"))
		seen[before] = true
		update()
		c.ask(fmt.Sprintf("cas a 0 0 1 %s\n9\n", before), "EXISTS\n")
		c.ask(fmt.Sprintf("cas a 0 0 1 %s\n5\n", c.unique("a")), "STORED\n")
	}
}

// Counting by cas from many connections loses nothing.
func TestCASLosesNoUpdate(t *testing.T) {
	s := start(t, "opts=f", ":")
	first := s.dial(t)
	first.ask("set n 0 0 1\n0\n", "STORED\n")
	const clients, each = 8, 50
	done := make(chan error, clients)
	for range clients {
		c := s.dial(t)
		go func() { done <- c.count(each) }()
	}
	for range clients {
		require.NoError(t, <-done)
	}
	first.ask("get n\n", fmt.Sprintf("VALUE n 0 3\n%d\nEND\n", clients*each))
}

// count adds 1 to n so often, by gets and cas.
func (c *client) count(times int) error {
	for done := 0; done < times; {
		fmt.Fprint(c, "gets n\r\n")
		var size, n int
		var unique string
		head, _ := c.r.ReadString('\n')
		if _, err := fmt.Sscanf(head, "VALUE n 0 %d %s", &size, &unique); err != nil {
			return fmt.Errorf("%q: %w", head, err)
		}
		value, _ := c.r.ReadString('\n')
		if _, err := fmt.Sscanf(value, "%d", &n); err != nil {
			return err
		}
		_, _ = c.r.ReadString('\n')
		text := fmt.Sprint(n + 1)
		fmt.Fprintf(c, "cas n 0 0 %d %s\r\n%s\r\n", len(text), unique, text)
		if result, _ := c.r.ReadString('\n'); result == "STORED\r\n" {
			done++
		}
	}
	return nil
}

func TestLargeMultiGet(t *testing.T) {
	s := start(t, "opts=f", ":")
	c := s.dial(t)
	var keys, want strings.Builder
	for i := range 3000 {
		key := fmt.Sprintf("a-rather-long-key-%05d", i)
		c.send("set %s 0 0 100 noreply\r\n%0100d\r\n", key, i)
		fmt.Fprintf(&keys, " %s", key)
		fmt.Fprintf(&want, "VALUE %s 0 100\n%0100d\n", key, i)
	}
	c.ask("get"+keys.String()+"\n", want.String()+"END\n")
}

func TestUnfinishedRequestsAreCut(t *testing.T) {
	s := start(t, "opts=f#tout=1", ":")
	for _, half := range []string{"get a", "set a 0 0 5\r\nab", "\x80\x0a\x00"} {
		c := s.dial(t)
		c.send("%s", half)
		c.ended()
	}
}

func TestStats(t *testing.T) {
	s := start(t, "opts=f#th=3", ":")
	c := s.dial(t)
	c.ask("set a 0 0 1\nx\ntouch a 0\nget a b\n", "STORED\nTOUCHED\nVALUE a 0 1\nx\nEND\n")
	c.send("stats\r\n")
	rows := map[string]string{}
	for line := c.line(); line != "END"; line = c.line() {
		words := strings.SplitN(line, " ", 3)
		require.Len(t, words, 3)
		rows[words[1]] = words[2]
	}
	for name, want := range map[string]string{"curr_items": "1", "db_count": "1", "get_hits": "1", "get_misses": "1", "cmd_get": "2",
		"cmd_touch": "1", "threads": "3", "curr_connections": "1", "total_connections": "1"} {
		require.Equal(t, want, rows[name], name)
	}
}

func TestRestartKeepsTheService(t *testing.T) {
	s := start(t, "opts=f", ":")
	c := s.dial(t)
	c.ask("set a 0 0 1\nx\n", "STORED\n")
	require.NoError(t, s.Close())
	c.ended()
	s.open(t)
	again := s.dial(t)
	again.ask("get a\n", "VALUE a 0 1\nx\nEND\n")
	again.send("stats\r\n")
	var all []string
	for line := again.line(); line != "END"; line = again.line() {
		all = append(all, line)
	}
	require.Contains(t, all, "STAT cmd_set 0")
	require.Contains(t, all, "STAT cmd_get 1")
}

func TestMetaCommands(t *testing.T) {
	for _, row := range []struct{ name, sent, want string }{
		{"noop", "mn\n", "MN\n"},
		{"set and get", "ms a 2 F5 Oop k\nhi\nmg a v f s t k Oxy\n", "HD Oop ka\nVA 2 f5 s2 t-1 ka Oxy\nhi\n"},
		{"miss", "mg a v\nmg a v q\nmd a\nmd a q\nme a\nmn\n", "EN\nNF\nEN\nMN\n"},
		{"hit without value", "ms a 1\nx\nmg a\nmg a q\n", "HD\nHD\nHD\n"},
		{"modes", "ms a 1 ME\nx\nms a 1 ME\ny\nms a 1 MA\nb\nms a 1 MP\nc\nms z 1 MR\nq\nms z 1 MA\nq\nmg a v\n",
			"HD\nNS\nHD\nHD\nNS\nNS\nVA 3\ncxb\n"},
		{"binary keys", "ms YSBi 1 b k\nx\nmg YSBi b k v\nmg %% b\n", "HD b kYSBi\nVA 1 b kYSBi\nx\nCLIENT_ERROR error decoding key\n"},
		{"delete", "ms a 1\nx\nmd a C1\nmd a Oq k\nmg a\n", "HD\nEX\nHD Oq ka\nEN\n"},
		{"invalidate", "ms a 1\nx\nmd a I T30\nmg a v\n", "HD\nHD\nEN\n"},
		{"arithmetic", "ma n\nma n N0 J10 v\nma n v\nma n D5 v\nma n MD D20 v t\nma n q\nmn\n",
			"NF\nVA 2\n10\nVA 2\n11\nVA 2\n16\nVA 1 t-1\n0\nMN\n"},
		{"arithmetic of text", "ms a 1\nx\nma a\nma a Dx\nma a Mx\n", "HD\nCLIENT_ERROR cannot increment or decrement non-numeric value\n" +
			"CLIENT_ERROR bad token in command line format\nCLIENT_ERROR bad token in command line format\n"},
		{"bad flags", "mg a h\nms a 1 X\nx\nms a 1 Tx\nx\nmg a\n", "CLIENT_ERROR invalid flag\nCLIENT_ERROR invalid flag\n" +
			"CLIENT_ERROR bad token in command line format\nEN\n"},
		{"bad size", "ms a x\n", "CLIENT_ERROR bad data chunk\n"},
		{"quiet", "ms a 1 q\nx\nms a 1 q ME\ny\nmd a q\nmn\n", "NS\nMN\n"},
		{"who computes it", "mg a v N30\nmg a v N30\nms a 1\nx\nmg a v N30\n", "VA 0 W\n\nVA 0 Z\n\nHD\nVA 1\nx\n"},
		{"who computes it anew", "ms a 1 T10\nx\nmg a R5\nmg a R30\nmg a R30\n", "HD\nHD\nHD W\nHD Z\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := start(t, "opts=f", ":")
			s.dial(t).ask(row.sent, row.want)
		})
	}
	t.Run("time to live", func(t *testing.T) {
		start(t, "opts=f", ":").dial(t).askInASecond("ms a 1 T100\nx\nmg a t\nmg a T200 t\n", "HD\nHD t100\nHD t100\n")
	})
}

// askInASecond is ask for commands that can be repeated, and replies that tell how many seconds are
// left: it asks again when the clock has come to the next second meanwhile.
func (c *client) askInASecond(sent, want string) {
	c.t.Helper()
	for {
		second := time.Now().Unix()
		c.send("%s", crlf(sent))
		got := ""
		for range strings.Count(want, "\n") {
			got += c.line() + "\n"
		}
		if time.Now().Unix() == second {
			require.Equal(c.t, want, got)
			return
		}
	}
}

func TestMetaCAS(t *testing.T) {
	s := start(t, "opts=f", ":")
	c := s.dial(t)
	version := func(sent string) string {
		c.send("%s", crlf(sent))
		found := regexp.MustCompile(` c(\d+)`).FindStringSubmatch(c.line())
		require.NotNil(t, found)
		return found[1]
	}
	first := version("ms a 1 c\nx\n")
	require.Equal(t, first, version("mg a c\n"))
	c.ask("ms a 1 C"+first+"\ny\n", "HD\n")
	c.ask("ms a 1 C"+first+"\nz\n", "EX\n")
	c.ask("ms z 1 C"+first+"\nz\n", "NF\n")
	c.ask("ma a C"+first+"\n", "EX\n")
	c.send("me a\r\n")
	require.Regexp(t, `^ME a exp=-1 cas=\d+ size=1$`, c.line())
}

// misled requires the reply to an HTTP request, and nothing behind it.
func (c *client) misled() {
	c.t.Helper()
	rest, _ := io.ReadAll(c.r)
	require.Regexp(c.t, `^HTTP/1\.1 400 Bad Request\r\n(?s:.*)\r\n\r\nthis port speaks memcached's protocol, not HTTP: [^\n]*\n$`, string(rest))
}

// A web page can make a browser send a request here, with commands in its body. The request line
// must end the connection.
func TestRequestsOfPagesEndTheConnection(t *testing.T) {
	for _, plex := range []string{"", "opts=f", "opts=q"} {
		s := start(t, plex, "%")
		require.NoError(t, s.db.Set(nil, []byte("k"), []byte("v"), record.Never))
		for _, line := range []string{"POST / HTTP/1.1", "GET /x?y HTTP/1.0", "PUT /a HTTP/1.1"} {
			c := s.dial(t)
			c.send("%s\r\nHost: 127.0.0.1\r\nContent-Length: 11\r\n\r\nflush_all\r\n", line)
			c.misled()
		}
		limit := maxLine
		if plex == "opts=f" {
			limit = longLine
		}
		c := s.dial(t)
		// The rest of a line that is too long would be the next line.
		c.send("POST /%s", strings.Repeat("x", limit-len("POST /"))+
			"flush_all HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 11\r\n\r\nflush_all\r\n")
		c.misled()
		c = s.dial(t)
		c.send("\x16\x03\x01\x02\x00\x01\nflush_all\r\n") // the first message of TLS
		c.ended()
		c = s.dial(t)
		c.send("\x16\x03\x01\x02\x00\x01") // without the end of a line
		c.ended()
		n, err := s.db.Count(nil)
		require.NoError(t, err)
		require.EqualValues(t, 1, n, plex)
	}
}
