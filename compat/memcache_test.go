package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

const (
	memcQuiet   = 60 * time.Millisecond  // nothing comes for so long: there is no more
	memcSilence = 250 * time.Millisecond // the same where nothing is expected at all
	memcLimit   = 15 * time.Second
)

// memcCase is one recorded conversation with the memcached plug-in.
type memcCase struct {
	Name    string
	Options struct {
		Plex string
		DBs  []string
		Args []string
		PlDB string
	}
	Exchange []memcStep
}

// memcStep is one of: bytes sent and received, the end of a connection, a pause, a procedure over
// HTTP, the records of a database.
type memcStep struct {
	Conn     string
	Sent     *string
	Received string
	Closed   bool `json:"closed_by_server"`
	Read     string
	Close    bool

	Sleep float64 `json:"sleep_s"`

	RPC    string
	Params map[string]string
	Status int
	Out    map[string]any

	Records *[][3]any `json:"db_records"`
	DB      int
}

// memcReplay replays a case against one server.
type memcReplay struct {
	addr, http string
	conns      map[string]net.Conn
	now        int64
	limit      time.Duration // how long to wait for an answer
}

// TestMemcachedPlugin replays all recorded conversations, each with a server of its own, all at
// once: they mostly wait.
func TestMemcachedPlugin(t *testing.T) {
	t.Parallel()
	cases := readJSONLines[memcCase](t, "memcached/*.jsonl")
	require.Len(t, cases, 33)
	bin, listed := ktproc.BuildPlain(t, "ktserver"), loadDifferences(t)
	var replays sync.WaitGroup
	found := make([]string, len(cases))
	for i := range cases {
		r, refused := startMemcached(t, bin, &cases[i])
		if refused != "" {
			found[i] = "the server does not start: " + refused
			continue
		}
		replays.Go(func() { found[i] = r.run(cases[i].Exchange) })
	}
	replays.Wait()
	for i := range cases {
		require.Empty(t, listed.verdict(caseID{memcQueueFile, cases[i].Name}, found[i]), cases[i].Name)
	}
}

// memcQueueFile is the only file of memcached whose cases are listed in DIFFERENCES.md. Its names
// are unique over all files.
const memcQueueFile = "memcached/queue"

// A queue in a database without an order is refused before anything is served, and config check
// says the same.
func TestQueueInAHash(t *testing.T) {
	t.Parallel()
	bin := ktproc.BuildPlain(t, "ktserver")
	args := []string{"-memcache-port", strconv.Itoa(freeport.Take(t)), "-memcache-opts", "q"}
	s := ktproc.Launch(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), Args: args, DBs: []string{"*"}}, freeport.Take(t))
	require.False(t, s.AwaitListening())
	require.Contains(t, s.Output(), "a message queue needs a database with an order of keys")
	out, err := exec.Command(bin, append(append([]string{"config", "check"}, args...), "*")...).CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Contains(t, string(out), "a message queue needs a database with an order of keys")
}

// readJSONLines reads the lines of files in testdata.
func readJSONLines[T any](t *testing.T, pattern string) (all []T) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", pattern))
	require.NoError(t, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		for line := range bytes.Lines(data) {
			var row T
			require.NoError(t, json.Unmarshal(line, &row), name)
			all = append(all, row)
		}
	}
	return all
}

// startMemcached starts a server with the options of the recording. If the server ends at once, it
// returns the output.
func startMemcached(t *testing.T, bin string, c *memcCase) (r *memcReplay, refused string) {
	t.Helper()
	dir := t.TempDir()
	var plugin []string
	if c.Options.PlDB != "" {
		plugin = []string{"-pldb", c.Options.PlDB}
	}
	if slices.Contains(c.Options.Args, "-ord") { // was there before, with one record
		first := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: dir, Args: plugin, DBs: c.Options.DBs})
		status, _, err := callRPC(first.Addr(), "set", map[string]string{"key": "a", "value": "5"})
		require.NoError(t, err)
		require.Equal(t, 200, status)
		first.Stop(t)
	}
	port := freeport.Take(t)
	plex := fmt.Sprintf("host=127.0.0.1#port=%d", port)
	if c.Options.Plex != "" {
		plex += "#" + c.Options.Plex
	}
	args := slices.Concat([]string{"-plsv", "/nowhere/ktplugservmemc.so", "-plex", plex}, c.Options.Args, plugin)
	o := ktproc.Options{Bin: bin, Dir: dir, Args: args, DBs: c.Options.DBs}
	s := ktproc.Launch(t, o, freeport.Take(t))
	if !s.AwaitListening() {
		return nil, s.Output()
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	awaitListening(t, addr)
	return &memcReplay{addr: addr, http: s.Addr(), conns: map[string]net.Conn{}, now: time.Now().Unix(), limit: memcLimit}, ""
}

func awaitListening(t *testing.T, addr string) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp4", addr)
		if err != nil {
			return false
		}
		return c.Close() == nil
	}, memcLimit, 5*time.Millisecond)
}

// run says what differed, or nothing.
func (r *memcReplay) run(steps []memcStep) string {
	defer func() {
		for _, c := range r.conns {
			c.Close()
		}
	}()
	for i := range steps {
		if difference := r.step(&steps[i]); difference != "" {
			return fmt.Sprintf("step %d: %s", i, difference)
		}
	}
	return ""
}

func (r *memcReplay) step(s *memcStep) string {
	switch {
	case s.Sleep > 0:
		time.Sleep(time.Duration(s.Sleep * float64(time.Second))) //lint:sleep recorded
		return ""
	case s.RPC != "":
		return r.rpc(s)
	case s.Records != nil:
		return r.awaitRecords(s)
	case s.Close:
		r.conns[s.Conn].Close()
		delete(r.conns, s.Conn)
		return ""
	}
	return r.converse(s)
}

func (r *memcReplay) converse(s *memcStep) string {
	if r.conns[s.Conn] == nil {
		c, err := net.Dial("tcp4", r.addr)
		if err != nil {
			return err.Error()
		}
		r.conns[s.Conn] = c
	}
	c := r.conns[s.Conn]
	if s.Sent != nil {
		sent := strings.NewReplacer("$NOW+100", fmt.Sprint(r.now+100), "$NOW-100", fmt.Sprint(r.now-100)).Replace(*s.Sent)
		if _, err := c.Write(toBytes(sent)); err != nil {
			return err.Error()
		}
	}
	if s.Read == "later" {
		return ""
	}
	got, closed := r.readReply(c, s)
	if closed {
		c.Close()
		delete(r.conns, s.Conn)
	}
	if got = maskStats(got); got != maskStats(s.Received) || closed != s.Closed {
		return fmt.Sprintf("%q: want %q closed %v, got %q closed %v", stringOf(s.Sent), s.Received, s.Closed, got, closed)
	}
	return ""
}

// readReply reads until nothing more comes, or the server closes.
func (r *memcReplay) readReply(c net.Conn, s *memcStep) (got string, closed bool) {
	var all []byte
	wait := r.limit
	if s.Received == "" && !s.Closed {
		wait = memcSilence
	}
	room := make([]byte, 64<<10)
	for {
		_ = c.SetReadDeadline(time.Now().Add(wait))
		n, err := c.Read(room)
		all = append(all, room[:n]...)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fromBytes(all), false
		}
		if err != nil {
			return fromBytes(all), true
		}
		if wait = r.limit; !s.Closed && maskStats(fromBytes(all)) == maskStats(s.Received) {
			wait = memcQuiet
		}
	}
}

var memcMasks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`STAT (db_\S+|bytes|curr_connections) [^\r]*\r\n`), ""}, // differ with the engine
	{regexp.MustCompile(`STAT pid \d+`), "STAT pid $$PID"},
	{regexp.MustCompile(`STAT uptime \d+`), "STAT uptime $$N"},
	{regexp.MustCompile(`STAT time \d+`), "STAT time $$EPOCH"},
}

func maskStats(reply string) string {
	if !strings.HasPrefix(reply, "STAT ") {
		return reply
	}
	for _, m := range memcMasks {
		reply = m.pattern.ReplaceAllString(reply, m.with)
	}
	return reply
}

var messageKeys = regexp.MustCompile(`\b0\d{13} (\d{4})\b`)

func (r *memcReplay) rpc(s *memcStep) string {
	status, out, err := callRPC(r.http, s.RPC, s.Params)
	if err != nil {
		return err.Error()
	}
	want := map[string]string{}
	near := true
	for name, value := range s.Out {
		if name != "xt_minus_now" {
			want[name] = value.(string)
			continue
		}
		xt, err := strconv.ParseInt(out["xt"], 10, 64)
		left := float64(xt - time.Now().Unix())
		near = err == nil && left-value.(float64) <= 3 && value.(float64)-left <= 3
		delete(out, "xt")
	}
	if status != s.Status || fmt.Sprint(out) != fmt.Sprint(want) || !near {
		return fmt.Sprintf("%s: want %d %v, got %d %v", s.RPC, s.Status, s.Out, status, out)
	}
	return ""
}

// awaitRecords compares the records, until they are right: the end of a connection is not answered.
func (r *memcReplay) awaitRecords(s *memcStep) string {
	var want []string
	for _, record := range *s.Records {
		want = append(want, fmt.Sprintf("%s=%s expires %v", record[0], record[1], record[2] != nil))
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) { //lint:sleep between looks
		got, err := readRecords(r.http, s.DB)
		switch {
		case err != nil:
			return err.Error()
		case slices.Equal(want, got):
			return ""
		case time.Now().After(deadline):
			return fmt.Sprintf("records: want %q, got %q", want, got)
		}
	}
}

// readRecords returns all records of a database, in its order.
func readRecords(addr string, db int) (all []string, err error) {
	c := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}} // cursors need one connection
	defer c.CloseIdleConnections()
	status, _, err := callRPCWith(c, addr, "cur_jump", map[string]string{"DB": strconv.Itoa(db), "CUR": "1"})
	for err == nil && status == http.StatusOK {
		var out map[string]string
		status, out, err = callRPCWith(c, addr, "cur_get", map[string]string{"CUR": "1", "step": ""})
		if err == nil && status == http.StatusOK {
			_, expires := out["xt"]
			all = append(all, fmt.Sprintf("%s=%s expires %v", messageKeys.ReplaceAllString(out["key"], "$$MS14 $1"), out["value"], expires))
		}
	}
	return all, err
}

func callRPC(addr, procedure string, params map[string]string) (status int, out map[string]string, err error) {
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	return callRPCWith(c, addr, procedure, params)
}

// callRPCWith calls a procedure. Strings have a byte in each character.
func callRPCWith(c *http.Client, addr, procedure string, params map[string]string) (status int, out map[string]string, err error) {
	var body strings.Builder
	for name, value := range params {
		fmt.Fprintf(&body, "%s\t%s\n", percent(name), percent(value))
	}
	r, err := c.Post("http://"+addr+"/rpc/"+procedure, "text/tab-separated-values; colenc=U", strings.NewReader(body.String()))
	if err != nil {
		return 0, nil, err
	}
	defer r.Body.Close()
	var content bytes.Buffer
	if _, err := content.ReadFrom(r.Body); err != nil {
		return 0, nil, err
	}
	out, err = decodeTSV(content.String(), r.Header.Get("Content-Type"))
	return r.StatusCode, out, err
}

func percent(text string) string {
	return strings.ReplaceAll(url.QueryEscape(string(toBytes(text))), "+", "%20")
}

// toBytes are the bytes whose numbers are the characters of text.
func toBytes(text string) []byte {
	var all []byte
	for _, r := range text {
		all = append(all, byte(r))
	}
	return all
}

// fromBytes is the reverse of toBytes.
func fromBytes(data []byte) string {
	runes := make([]rune, 0, len(data))
	for _, b := range data {
		runes = append(runes, rune(b))
	}
	return string(runes)
}

func stringOf(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
