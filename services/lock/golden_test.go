package lock

import (
	"encoding/json"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/services/internal/servicetest"
)

// silence is long enough for a line that must not come.
const silence = 100 * time.Millisecond

// recording is a recorded conversation with the original.
type recording struct {
	Name     string
	Requires []string
	Steps    []recordedStep
}

type recordedStep struct {
	Conn, Op string
	Sent     payload
	Received *payload
	Pattern  string `json:"received_re"`
	EOF      bool
	MS       int
	WaitMS   int `json:"wait_ms"`
}

// payload is text, or a list of ["str", x] and ["rep", x, n].
type payload string

func (p *payload) UnmarshalJSON(text []byte) error {
	var parts [][]any
	if json.Unmarshal(text, (*string)(p)) == nil {
		return nil
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	for _, part := range parts {
		n := 1.0
		if part[0] == "rep" {
			n = part[2].(float64)
		}
		*p += payload(strings.Repeat(part[1].(string), int(n)))
	}
	return nil
}

// differing are the recordings that are not followed, with the test of what is done instead.
var differing = map[string]string{
	"silently-ignored-lines": "TestEveryMalformedLineIsAnswered",
	"line-over-8192-deaf":    "TestALineThatIsTooLongIsDropped",
	"stale-limit-bug":        "TestTheLimitIsThatOfTheHolders",
	"expires-overflow-bug":   "TestLongTimes",
}

// The recordings of the original are the specification.
func TestRecordings(t *testing.T) {
	t.Parallel()
	all := servicetest.ReadCases[recording](t, "lock.jsonl")
	for _, r := range all {
		if differing[r.Name] == "" {
			t.Run(r.Name, func(t *testing.T) { t.Parallel(); inLoopsAndAlone(t, r.play) })
		}
	}
	require.Len(t, all, 29)
}

// stage is a server with the connections of a conversation.
type stage struct {
	server *Server
	addr   string
	peers  map[string]*peer
}

func (r *recording) play(t *testing.T, start func(testing.TB, Options) (*Server, string)) {
	st := &stage{peers: map[string]*peer{}}
	st.server, st.addr = start(t, Options{})
	for i, step := range r.Steps {
		t.Logf("step %d", i)
		switch step.Op {
		case "second_start":
		case "sleep":
			<-time.After(time.Duration(step.MS) * time.Millisecond)
		default:
			step.play(t, st)
		}
	}
}

func (st *stage) peer(t *testing.T, name string) *peer {
	if st.peers[name] == nil {
		st.peers[name] = dial(t, st.addr)
	}
	return st.peers[name]
}

// gone waits until the server has noticed the end of a connection.
func (st *stage) gone(t *testing.T, name string, before int) {
	delete(st.peers, name)
	require.Eventually(t, func() bool { return st.server.Stats().Conns < before }, waitLimit, time.Millisecond)
}

func (step *recordedStep) play(t *testing.T, st *stage) {
	p := st.peer(t, step.Conn)
	before := len(st.peers)
	_, err := io.WriteString(p, string(step.Sent))
	require.NoError(t, err)
	switch step.Op {
	case "", "listen":
	case "close":
		require.NoError(t, p.Close())
		st.gone(t, step.Conn, before)
		return
	case "reset":
		require.NoError(t, p.Conn.(*net.TCPConn).SetLinger(0))
		require.NoError(t, p.Close())
		st.gone(t, step.Conn, before)
		return
	case "half_close":
		require.NoError(t, p.Conn.(*net.TCPConn).CloseWrite())
	default:
		require.Fail(t, "unknown op", step.Op)
	}
	step.check(t, p)
	if step.EOF {
		st.gone(t, step.Conn, before)
	}
}

func (step *recordedStep) check(t *testing.T, p *peer) {
	switch {
	case step.EOF:
		have, err := io.ReadAll(p.in)
		require.NoError(t, err)
		step.compare(t, string(have))
	case step.Received == nil:
		step.compare(t, p.lines(strings.Count(step.Pattern, "STATUS")/2))
	case *step.Received == "":
		p.silent(max(silence, time.Duration(step.WaitMS)*time.Millisecond-silence))
	default:
		step.compare(t, p.lines(strings.Count(string(*step.Received), "\n")))
	}
}

func (step *recordedStep) compare(t *testing.T, have string) {
	t.Helper()
	if step.Received == nil {
		require.Regexp(t, regexp.MustCompile(`\A(?:`+step.Pattern+`)\z`), have)
		return
	}
	require.Equal(t, string(*step.Received), have)
}
