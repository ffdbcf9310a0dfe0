package lock

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse compares the parser with the same rules in other words.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"lock k", "lock k 1 2 3", "lock  k", "lock k\r", "lock k \r", " ", "", "lock", "release k x y z a b", "lock k +5 -1 007",
		"lock k 2147483647 -2147483648 2147483648", "lock k - + 1.5", "lock k\r\r", "status \xff\x00",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		line, _, _ = strings.Cut(line, "\n")
		c := parse([]byte(line))
		words := strings.Split(strings.TrimRight(strings.TrimSuffix(line, "\r"), " "), " ")
		place := slices.Index(commandNames()[:verbUnknown], words[0])
		if place < 0 {
			place = int(verbUnknown)
		}
		require.Equal(t, place, int(c.verb))
		rest := words[1:min(5, len(words))]
		require.Equal(t, len(rest), c.n)
		for i, word := range rest {
			require.Equal(t, word, string(c.words[i]))
		}
		w, refusal := c.wish(true)
		want := []int64{usualMax, usualTimeout, usualExpires}
		for i := range want {
			if i+1 >= c.n {
				break
			}
			n, err := strconv.ParseInt(rest[i+1], 10, 32)
			if err != nil || strings.Contains(rest[i+1], "_") {
				require.Equal(t, invalidNumber, refusal)
				return
			}
			want[i] = n
		}
		if refusal == "" {
			require.Equal(t, want, []int64{int64(w.max), int64(w.timeout), int64(w.expires)})
			require.True(t, w.max >= 1 && w.timeout >= -1 && w.expires >= 0)
		} else {
			require.NotEqual(t, invalidNumber, refusal)
			require.True(t, want[0] < 1 || want[1] < -1 || want[2] < 0)
		}
	})
}

// FuzzConversation plays lines to the table as three sessions would. Nothing may break, and nothing
// may be left behind.
func FuzzConversation(f *testing.F) {
	f.Add("lock k\n1lock k\nrelease k\n1cancel k\n2lock-fenced k 3 1 0\n2renew k 0\nlock k 2 -1 0\n1quit")
	f.Add("lock a 3\n1lock a 2\n2lock a 1\n1lock a 9\nrelease a\n1cancel a 2\n+\nrelease a")
	f.Fuzz(func(t *testing.T, text string) {
		w := newWorld(t, false)
		var st step
		for _, line := range strings.Split(text, "\n") {
			w.now++
			st.by, st.now = w.sessions[0], w.now
			if len(line) > 0 && line[0] >= '0' && line[0] < '0'+modelSessions {
				st.by, line = w.sessions[line[0]-'0'], line[1:]
			}
			w.play(&st, line)
		}
		for _, s := range w.sessions {
			w.table.end(&step{now: w.now, by: s}, s, true)
		}
		require.Empty(t, w.table.statuses())
		w.table.pass(&step{now: math.MaxInt64 - 1})
		require.Zero(t, w.table.waiters.Load()+w.table.keys.Load())
	})
}

// play carries out a line with the code of a connection that has no socket.
func (w *world) play(st *step, line string) {
	if line == "+" {
		w.now += second
		w.table.pass(&step{now: w.now})
		return
	}
	c := &conn{server: &Server{table: w.table}, step: *st}
	cmd := parse([]byte(line))
	if cmd.verb <= verbCancel { // those with a key
		c.withKey(&cmd)
	}
}
