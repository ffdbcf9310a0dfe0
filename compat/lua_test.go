package compat

import (
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

const luaFiles = "testdata/lua"

// luaCase is a recorded call of a procedure: of the evaluator (Code), over HTTP (Sent) or in binary
// (SentHex).
type luaCase struct {
	Name    string
	Script  string
	Options []string
	Flags   []string

	Code    string
	Results []string
	Error   *string

	Via         string
	Sent        map[string]latin1
	Status      int
	Received    map[string]latin1
	SentHex     string `json:"sent_hex"`
	ReceivedHex string `json:"received_hex"`
}

// TestLua replays the recorded chunks and calls. Cases of one server follow each other on one
// process.
func TestLua(t *testing.T) {
	bin, listed := ktproc.BuildPlain(t, "ktserver"), loadDifferences(t)
	for file, groups := range luaGroups(t) {
		for _, group := range groups {
			t.Run(group[0].group(), func(t *testing.T) {
				t.Parallel()
				replayLua(t, startLua(t, bin, group[0].Script, group[0].Options), "lua/"+file, group, listed)
			})
		}
	}
}

// luaGroups returns the cases of each file, one group for each server.
func luaGroups(t *testing.T) map[string][][]luaCase {
	t.Helper()
	all := map[string][][]luaCase{}
	for _, file := range []string{"eval", "calls"} {
		cases := readLines[luaCase](t, filepath.Join(luaFiles, file+".jsonl"))
		for len(cases) > 0 {
			n := slices.IndexFunc(cases, func(c luaCase) bool { return c.group() != cases[0].group() })
			if n < 0 {
				n = len(cases)
			}
			all[file] = append(all[file], cases[:n])
			cases = cases[n:]
		}
	}
	return all
}

// group is what cases on one server have in common.
func (c *luaCase) group() string {
	return c.Name[:strings.LastIndexByte(c.Name, '-')] + " " + strings.Join(c.Options, " ")
}

// replayLua replays cases on a server, which it stops.
func replayLua(t *testing.T, p *luaServer, file string, cases []luaCase, listed differences) {
	for _, c := range cases {
		found := p.replay(t, &c)
		if c.loose() {
			continue // it has been run, but its result is another one or any
		}
		if bad := listed.verdict(caseID{file, c.Name}, found); bad != "" {
			t.Errorf("%s: %s", c.Name, bad)
		}
	}
	p.Stop(t)
}

// loose reports whether the results are not compared: an order that nobody promises, sizes of the
// original's engine, a bug.
func (c *luaCase) loose() bool {
	return slices.ContainsFunc(c.Flags, func(flag string) bool {
		return strings.HasPrefix(flag, "order") || strings.HasPrefix(flag, "depends") || strings.HasPrefix(flag, "shows")
	})
}

// luaServer is a server with a script.
type luaServer struct {
	*ktproc.Server
	dir string // stands for $DIR
}

func startLua(t *testing.T, bin, script string, options []string) *luaServer {
	t.Helper()
	args := slices.Clone(options)
	if i := slices.Index(args, "-scr"); i >= 0 {
		path, err := filepath.Abs(filepath.Join(luaFiles, script))
		require.NoError(t, err)
		args[i+1] = path
	}
	args, dbs := cutDatabases(args)
	s := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), Args: args, DBs: dbs})
	return &luaServer{s, t.TempDir()}
}

// cutDatabases returns the recorded options without the databases behind them, and these.
func cutDatabases(options []string) (args, dbs []string) {
	first := slices.IndexFunc(options, isDatabase)
	if first < 0 {
		return options, nil
	}
	return options[:first:first], options[first:]
}

// isDatabase tells the databases of the recorded options from the options.
func isDatabase(arg string) bool {
	return strings.Contains("%*:+", arg) || strings.HasPrefix(arg, "c.kc")
}

// replay says what differed.
func (p *luaServer) replay(t *testing.T, c *luaCase) (difference string) {
	t.Helper()
	switch {
	case c.SentHex != "":
		return p.replayBinary(t, c)
	case c.Via != "":
		status, rows := p.play(t, c.Sent)
		if status != c.Status || fmt.Sprint(rows) != fmt.Sprint(c.Received) {
			return fmt.Sprintf("want %d %q, got %d %q", c.Status, c.Received, status, rows)
		}
		return ""
	}
	return p.replayChunk(t, c)
}

// play calls play_script over HTTP.
func (p *luaServer) play(t *testing.T, in map[string]latin1) (status int, out map[string]latin1) {
	t.Helper()
	return p.rpc(t, "play_script", in)
}

func (p *luaServer) rpc(t *testing.T, procedure string, in map[string]latin1) (status int, out map[string]latin1) {
	t.Helper()
	form := url.Values{}
	for name, value := range in {
		form.Set(name, string(value))
	}
	r, err := http.PostForm("http://"+p.Addr()+"/rpc/"+procedure, form)
	require.NoError(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	out = map[string]latin1{}
	decode := func(s string) string { return s }
	if strings.Contains(r.Header.Get("Content-Type"), "colenc=U") {
		decode = func(s string) string {
			text, err := url.PathUnescape(s)
			require.NoError(t, err)
			return text
		}
	}
	for line := range strings.Lines(string(body)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		out[decode(name)] = latin1(decode(value))
	}
	return r.StatusCode, out
}

// replayBinary sends a request. A request without a reply is followed by "void", whose reply shows
// that the server has read the request.
func (p *luaServer) replayBinary(t *testing.T, c *luaCase) (difference string) {
	t.Helper()
	sent, err := hex.DecodeString(c.SentHex)
	require.NoError(t, err)
	want, err := hex.DecodeString(c.ReceivedHex)
	require.NoError(t, err)
	const behind = "\xba\x00\x00\x00\x00\x00\x00\x00\x00"
	conn, err := net.Dial("tcp4", p.Addr())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(answerLimit)))
	_, err = conn.Write(append(sent, behind...))
	require.NoError(t, err)
	want = append(want, "\xba\x00\x00\x00\x00"...)
	got := make([]byte, len(want))
	n, err := io.ReadFull(conn, got)
	if err != nil || string(got) != string(want) {
		return fmt.Sprintf("want %x, got %x (%v)", want, got[:n], err)
	}
	return ""
}

var (
	epoch    = regexp.MustCompile(`number:(?:1[78]|3[4-9])\d{8}\b`)
	logTimes = regexp.MustCompile(`time=\d+\.\d+`)
	lengths  = regexp.MustCompile(`string\(\d+\)`)
)

func (p *luaServer) replayChunk(t *testing.T, c *luaCase) (difference string) {
	t.Helper()
	code := strings.ReplaceAll(c.Code, "$DIR", p.dir)
	_, out := p.play(t, map[string]latin1{"name": "ev", "_code": latin1(code)})
	mask := func(s latin1) string {
		text := strings.ReplaceAll(string(s), p.dir, "$DIR")
		return epoch.ReplaceAllString(logTimes.ReplaceAllString(text, "time=$$T"), "number:$$EPOCH")
	}
	if c.Error != nil {
		if got := mask(out["_error"]); got != *c.Error {
			return fmt.Sprintf("%s: want the error %q, got %q", c.Code, *c.Error, out)
		}
		return ""
	}
	n, err := strconv.Atoi(string(out["_n"]))
	if err != nil || n != len(c.Results) {
		return fmt.Sprintf("%s: want %q, got %q", c.Code, c.Results, out)
	}
	for i, want := range c.Results {
		if got := mask(out["_r"+strconv.Itoa(i+1)]); !c.same(want, got) {
			return fmt.Sprintf("%s: result %d: want %q, got %q", c.Code, i+1, want, got)
		}
	}
	return ""
}

// same compares results: cases about the clock may differ by two seconds.
func (c *luaCase) same(want, got string) bool {
	if strings.Contains(c.Code, "$DIR") {
		want, got = lengths.ReplaceAllString(want, "string"), lengths.ReplaceAllString(got, "string")
	}
	if want == got {
		return true
	}
	a, errA := strconv.ParseFloat(strings.TrimPrefix(want, "number:"), 64)
	b, errB := strconv.ParseFloat(strings.TrimPrefix(got, "number:"), 64)
	clock := slices.ContainsFunc(c.Flags, func(flag string) bool { return strings.HasPrefix(flag, "clock") })
	return clock && errA == nil && errB == nil && math.Abs(a-b) <= 2
}

// luaStep is a step of a recorded transaction that spans several calls: a call, or a call on
// another connection whose answer comes later.
type luaStep struct {
	RPC          string
	Params, Out  map[string]latin1
	Status       int
	Concurrently string
}

// luaTransaction is a recorded transaction that spans several calls.
type luaTransaction struct {
	Options []string
	Steps   []luaStep
}

func luaTransactions(t *testing.T) []luaTransaction {
	t.Helper()
	return readLines[luaTransaction](t, filepath.Join(luaFiles, "tx.jsonl"))
}

// TestLuaTransactions replays transactions that are begun in one call and ended in another. Two
// begin at the same time in each: the second one waits.
func TestLuaTransactions(t *testing.T) {
	bin := ktproc.BuildPlain(t, "ktserver")
	for _, c := range luaTransactions(t) {
		t.Run(c.Options[len(c.Options)-1], func(t *testing.T) {
			t.Parallel()
			p := startLua(t, bin, "tx.lua", c.Options)
			waiting := make(chan int, 1)
			for _, step := range c.Steps {
				switch {
				case step.RPC != "":
					status, out := p.rpc(t, step.RPC, step.Params)
					delete(out, "_thid")
					require.Equal(t, step.Status, status, step)
					require.Equal(t, step.Out, out, step)
				case step.Concurrently != "":
					go func() {
						status, _ := p.rpc(t, "play_script", map[string]latin1{"name": "begin"})
						waiting <- status
					}()
					select {
					case <-waiting:
						t.Error("a second transaction has begun")
					case <-time.After(600 * time.Millisecond):
					}
				default:
					require.Equal(t, 200, <-waiting)
				}
			}
			p.Stop(t)
		})
	}
}
