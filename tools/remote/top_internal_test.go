package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

func sampleAt(seconds int64, rows map[string]string) *sample {
	s := &sample{at: time.Unix(1_800_000_000+seconds, 0).UTC(), rows: client.Rows{}}
	for name, value := range rows {
		s.rows[name] = []byte(value)
	}
	return s
}

func twoSamples() (before, now *sample) {
	before = sampleAt(0, map[string]string{"cnt_set": "100", "cnt_get": "50", "sys_ru_utime": "1.5"})
	now = sampleAt(2, map[string]string{
		"cnt_set": "300", "cnt_get": "50", "cnt_get_misses": "7", "sys_ru_utime": "2.5", "sys_mem_rss": "1572864", "serv_conn_count": "3",
		"serv_running_term": "93600", "db_total_count": "12", "db_0": "count=12 size=2048 path=a\x1b[2J.kct", "repl_state": "streaming",
	})
	return before, now
}

func TestRates(t *testing.T) {
	before, now := twoSamples()
	r := ratesBetween(before, now)
	require.Equal(t, rates{set: 100, getMiss: 3.5, cpu: 0.5}, r)
	require.Zero(t, func() rates { r := ratesBetween(now, before); return r }().set, "the server was started again")
}

func TestTopWithoutATerminal(t *testing.T) {
	before, now := twoSamples()
	var out bytes.Buffer
	c := newCall("top", nil, strings.NewReader(""), &out, io.Discard)
	view, end := c.topView()
	defer end()
	require.NoError(t, view.show(before, now))
	require.NoError(t, view.show(before, now))
	require.NoError(t, c.out.Flush())
	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, strings.Fields("time set/s get/s remove/s misses/s other/s conns records memory cpu"), strings.Fields(lines[0]))
	require.Equal(t, strings.Fields("08:00:02 100 0 0 4 0 3 12 1.5M 50%"), strings.Fields(lines[1]))
	require.Equal(t, lines[1], lines[2])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.True(t, view.wait(ctx, time.Hour))
	require.False(t, view.wait(t.Context(), 0))
}

func TestTopScreen(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	before, now := twoSamples()
	s := newScreen(newCall("top", nil, strings.NewReader(""), io.Discard, io.Discard))
	defer s.close()
	s.lines(before, before)
	text := strings.Join(s.lines(before, now), "\n")
	for _, want := range []string{"localhost:1978  up 1d2h0m0s  connections 3  cpu 50%  memory 1.5M", "set               100          0   █\n",
		"get                 0          4  ", "0                12       2.0K  a?[2J.kct", "state                        streaming"} {
		require.Contains(t, text, want)
	}
}

func TestClip(t *testing.T) {
	require.Equal(t, "ab\x1b[0m", clip("abc", 2))
	require.Equal(t, "abc", clip("abc", 3))
	require.Equal(t, "\x1b[1ma\x1b[0m█\x1b[0m", clip("\x1b[1ma\x1b[0m█b", 2))
}

func TestSizes(t *testing.T) {
	for bytes, want := range map[float64]string{0: "0B", 1023: "1023B", 1024: "1.0K", 1 << 30: "1.0G", 5 << 40: "5.0T"} {
		require.Equal(t, want, size(bytes))
	}
}

func TestTopOptions(t *testing.T) {
	c := newCall("top", []string{"-iv", "0.01"}, strings.NewReader(""), io.Discard, io.Discard)
	var wrong usageError
	require.True(t, errors.As(top(t.Context(), c), &wrong))
}

func TestStatsBetweenSamples(t *testing.T) {
	before, now := twoSamples()
	var out bytes.Buffer
	v := &statsView{lineView: lineView{call: newCall("stats", nil, strings.NewReader(""), &out, io.Discard)}}
	require.NoError(t, v.show(before, now))
	require.NoError(t, v.out.Flush())
	lines := strings.Split(out.String(), "\n")
	require.Equal(t, strings.Fields("08:00:02 value per second"), strings.Fields(lines[0]))
	require.Equal(t, strings.Fields("cnt_get_misses 7 +3.5"), strings.Fields(lines[1]))
	require.Equal(t, strings.Fields("cnt_set 300 +100.0"), strings.Fields(lines[2]))
	require.NotContains(t, out.String(), "cnt_get ", "it has not changed")

	out.Reset()
	v.json, v.args = true, []string{"cnt_set", "db_0_c"}
	require.NoError(t, v.show(before, now))
	require.NoError(t, v.out.Flush())
	require.Equal(t, `{"cnt_set":{"per_second":100,"value":300},"db_0_count":{"per_second":6,"value":12},"time":1800000002}`+"\n", out.String())
}
