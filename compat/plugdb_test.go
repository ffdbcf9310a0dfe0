package compat

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

// voidStep is a request to the void database, or an update that the requests have left in the log.
type voidStep struct {
	Name    string
	Options []string

	RPC    string
	Params map[string]string

	Method, Path string
	Body         *string
	Headers      map[string]string

	Status int
	Out    any

	SentHex     string `json:"sent_hex"`
	ReceivedHex string `json:"received_hex"`

	SID, DB, Op string
	Args        []string
}

// TestVoidDatabase replays the requests in their order, on one server, and then compares its log.
func TestVoidDatabase(t *testing.T) {
	t.Parallel()
	steps := readJSONLines[voidStep](t, "plugdb/*.jsonl")
	require.Len(t, steps, 77)
	bin := ktproc.BuildPlain(t, "ktserver")
	options := steps[0].Options
	s := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), Args: options[:len(options)-2], DBs: options[len(options)-2:]})
	cursors := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer cursors.CloseIdleConnections()
	var updates []string
	for i := range steps {
		step := &steps[i]
		require.NotEmpty(t, step.Name)
		switch {
		case step.RPC != "":
			step.replayRPC(t, cursors, s.Addr())
		case step.Method != "":
			step.replayREST(t, s.Addr())
		case step.SentHex != "":
			step.replayBinary(t, s.Addr())
		default:
			updates = append(updates, step.update())
		}
	}
	require.Equal(t, updates, readLog(t, s))
	s.Stop(t)
}

func (v *voidStep) replayRPC(t *testing.T, c *http.Client, addr string) {
	t.Helper()
	status, out, err := callRPCWith(c, addr, v.RPC, v.Params)
	require.NoError(t, err)
	require.Equal(t, v.Status, status, v.Name)
	want := map[string]string{}
	for name, value := range v.Out.(map[string]any) {
		if name == "conf_kt_features" { // what a version can do
			continue
		}
		want[name] = value.(string)
	}
	if v.RPC == "report" { // the recording has the rows that matter
		for name := range out {
			if _, ok := want[name]; !ok {
				delete(out, name)
			}
		}
	}
	require.Equal(t, want, out, v.Name)
}

func (v *voidStep) replayREST(t *testing.T, addr string) {
	t.Helper()
	var body io.Reader
	if v.Body != nil {
		body = strings.NewReader(*v.Body)
	}
	r, err := http.NewRequest(v.Method, "http://"+addr+v.Path, body)
	require.NoError(t, err)
	for name, value := range v.Headers {
		r.Header.Set(name, value)
	}
	reply, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	reply.Body.Close()
	require.Equal(t, v.Status, reply.StatusCode, "%s %s %v", v.Method, v.Path, v.Headers)
}

func (v *voidStep) replayBinary(t *testing.T, addr string) {
	t.Helper()
	sent, err := hex.DecodeString(v.SentHex)
	require.NoError(t, err)
	c, err := net.Dial("tcp4", addr)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(memcLimit)))
	_, err = c.Write(sent)
	require.NoError(t, err)
	got := make([]byte, len(v.ReceivedHex)/2)
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, v.ReceivedHex, hex.EncodeToString(got))
}

// update is an update as text, the value in hexadecimal with the expiration time apart.
func (v *voidStep) update() string {
	return updateText(v.SID, v.DB, v.Op, v.Args)
}

func updateText(sid, db, op string, args []string) string {
	text := sid + " " + db + " " + op
	if len(args) > 0 {
		text += " " + args[0]
	}
	if len(args) > 1 {
		value := toBytes(args[1])
		xt := hex.EncodeToString(value[:5])
		if xt != "ffffffffff" {
			xt = "a time"
		}
		text += fmt.Sprintf(" %s %x", xt, value[5:])
	}
	return text
}

// readLog prints the server's log with ktremotemgr.
func readLog(t *testing.T, s *ktproc.Server) (updates []string) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	out, err := exec.Command(ktproc.BuildPlain(t, "ktremotemgr"), "slave", "-port", port, "-ts", "0").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		require.GreaterOrEqual(t, len(fields), 4, line)
		var args []string
		for _, field := range fields[4:] {
			data, err := base64.StdEncoding.DecodeString(field)
			require.NoError(t, err)
			args = append(args, fromBytes(data))
		}
		updates = append(updates, updateText(fields[1], fields[2], fields[3], args))
	}
	return updates
}

// decodeTSV reads the rows of a reply.
func decodeTSV(content, kind string) (map[string]string, error) {
	out := map[string]string{}
	_, encoding, _ := strings.Cut(kind, "colenc=")
	for line := range strings.Lines(content) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		var err error
		if name, err = decodeColumn(name, encoding); err != nil {
			return nil, err
		}
		if value, err = decodeColumn(value, encoding); err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, nil
}

func decodeColumn(text, encoding string) (string, error) {
	switch encoding {
	case "U":
		raw, err := url.PathUnescape(text)
		return fromBytes([]byte(raw)), err
	case "B":
		raw, err := base64.StdEncoding.DecodeString(text)
		return fromBytes(raw), err
	}
	return fromBytes([]byte(text)), nil
}

// TestPublishedVoidDatabase follows the published tutorial: a master with a void database keeps
// nothing, and its slave keeps every record.
func TestPublishedVoidDatabase(t *testing.T) {
	t.Parallel()
	bin, remote := ktproc.BuildPlain(t, "ktserver"), ktproc.BuildPlain(t, "ktremotemgr")
	port := func(s *ktproc.Server) string {
		_, port, err := net.SplitHostPort(s.Addr())
		require.NoError(t, err)
		return port
	}
	run := func(args ...string) (string, error) {
		out, err := exec.Command(remote, args...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	// The published command has no database name, and does not start there either.
	refused := ktproc.Launch(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), BareDBs: true,
		Args: []string{"-ulog", "0001-ulog", "-sid", "1", "-pldb", "/usr/local/libexec/ktplugdbvoid.so"}}, freeport.Take(t))
	require.Equal(t, 1, refused.ExitCode(t))

	master := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), DBs: []string{"void"},
		Args: []string{"-ulog", "0001-ulog", "-sid", "1", "-pldb", "/usr/local/libexec/ktplugdbvoid.so"}})
	slave := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), DBs: []string{"casket.kch"},
		Args: []string{"-sid", "2", "-mhost", "localhost", "-mport", port(master), "-rts", "2.rts"}})

	out, err := run("set", "-port", port(master), "foo", "bar")
	require.NoError(t, err, out)
	out, err = run("get", "-port", port(master), "foo")
	require.Error(t, err)
	require.Equal(t, "ktremotemgr: DB::get failed: :"+port(master)+": 3: logical inconsistency: DB: 7: no record: no record", out)
	require.Eventually(t, func() bool {
		out, err := run("get", "-port", port(slave), "foo")
		return err == nil && out == "bar"
	}, memcLimit, 20*time.Millisecond)
	slave.Stop(t)
	master.Stop(t)
}
