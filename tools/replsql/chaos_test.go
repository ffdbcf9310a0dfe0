package replsql_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
)

const limit = 120 * time.Second // of each wait, on a busy machine

// TestKills kills the server, the agent, ktreplsql and PostgreSQL at random while records change.
// In the end the table is like the databases, and every update of the log has changed it once, in
// order. GOTYCOON_CHAOS sets the number of kills.
func TestKills(t *testing.T) {
	kills := 6
	if text := os.Getenv("GOTYCOON_CHAOS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		kills = max(n, 50)
	}
	bin := build(t)
	eachTarget(t, func(t *testing.T, g target) {
		c := newChaos(t, bin, g)
		keepHistory(t, g)
		c.write()
		require.Eventually(t, func() bool { return c.position(t) > 0 }, limit, time.Millisecond, "nothing moves")
		for i := range kills {
			before := c.position(t)
			victim := []string{"ktreplsql", "ktserver", "ktremotemgr", "postgres"}[i%4]
			c.kill(t, victim)
			require.Eventually(t, func() bool { return c.position(t) > before }, limit, time.Millisecond, "nothing moves after the kill of %s", victim)
		}
		c.stopWriters()
		c.awaitEqual(t)
		log := c.log(t)
		require.Equal(t, c.sets(log), g.query(t, "SELECT stamp FROM history ORDER BY id"), "every update once")
		require.Greater(t, len(log), kills)
		t.Logf("%d updates over %d kills", len(log), kills)
		c.stop()
	})
}

// build builds the programs of both modules.
func build(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for from, what := range map[string]string{"../..": "./cmd/...", ".": "./cmd/..."} {
		cmd := exec.Command("go", "build", "-o", dir+"/", what)
		cmd.Dir = from
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return dir
}

// keepHistory notes in a table of its own what changes records.
func keepHistory(t *testing.T, g target) {
	t.Helper()
	exit, _, stderr := run(t, "", g.name) // creates the tables
	require.Zero(t, exit, stderr)
	if g.postgres {
		for _, statement := range []string{
			"CREATE TABLE history (id BIGSERIAL PRIMARY KEY, stamp BIGINT)",
			"CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO history (stamp) VALUES (NEW.stamp); RETURN NEW; END'",
			"CREATE TRIGGER note AFTER INSERT OR UPDATE ON ktrecords FOR EACH ROW EXECUTE FUNCTION note()",
		} {
			_ = g.query(t, statement)
		}
		return
	}
	_ = g.query(t, "CREATE TABLE history (id INTEGER PRIMARY KEY, stamp BIGINT)")
	for _, event := range []string{"INSERT", "UPDATE"} {
		_ = g.query(t, "CREATE TRIGGER note_"+event+" AFTER "+event+" ON ktrecords BEGIN INSERT INTO history (stamp) VALUES (NEW.stamp); END")
	}
}

// chaos is a server, its writers, and the programs that follow it. Each program is started again
// when it ends.
type chaos struct {
	bin, dir string
	port     string
	target   target
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	complaints *os.File // what the programs say

	mu        sync.Mutex
	processes map[string]*os.Process

	writers     sync.WaitGroup
	writersDone context.CancelFunc
}

func newChaos(t *testing.T, bin string, g target) *chaos {
	t.Helper()
	c := &chaos{bin: bin, dir: t.TempDir(), target: g, port: strconv.Itoa(freeport.Take(t)), processes: map[string]*os.Process{}}
	var err error
	c.complaints, err = os.Create(filepath.Join(c.dir, "complaints"))
	require.NoError(t, err)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	t.Cleanup(func() {
		c.stop()
		if text, err := os.ReadFile(c.complaints.Name()); err == nil && t.Failed() {
			t.Logf("the programs say:\n%s", text)
		}
		_ = c.complaints.Close() // nothing is written any more
	})
	c.running.Go(func() {
		for c.ctx.Err() == nil {
			c.run(c.command("ktserver", "-port", c.port, "-ulog", "ulog", "-sid", "1", "-log", "server.log", "a.kct", "b.kct"))
		}
	})
	c.running.Go(func() {
		for c.ctx.Err() == nil {
			c.pipe()
		}
	})
	return c
}

func (c *chaos) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.ctx, filepath.Join(c.bin, name), args...)
	cmd.Dir, cmd.Stderr = c.dir, c.complaints
	return cmd
}

// run runs a program until it is killed. If the program ends at once, run waits before it returns,
// so that the program is not restarted again and again.
func (c *chaos) run(cmd *exec.Cmd) {
	if err := cmd.Start(); err != nil {
		return
	}
	c.mu.Lock()
	c.processes[filepath.Base(cmd.Path)] = cmd.Process
	c.mu.Unlock()
	begin := time.Now()
	_ = cmd.Wait() // it was killed
	select {
	case <-c.ctx.Done():
	case <-time.After(50*time.Millisecond - time.Since(begin)):
	}
}

// pipe runs the command line of the documentation: ktremotemgr slave -uw -ts $(ktreplsql position
// DB) | ktreplsql DB
func (c *chaos) pipe() {
	at, err := c.command("ktreplsql", "position", c.target.name).Output()
	if err != nil {
		return // the database is away
	}
	r, w, err := os.Pipe()
	if err != nil {
		return
	}
	agent := c.command("ktremotemgr", "slave", "-port", c.port, "-uw", "-sid", "65535", "-ts", strings.TrimSpace(string(at)))
	agent.Stdout = w
	sql := c.command("ktreplsql", "-batch", "50", c.target.name)
	sql.Stdin = r
	var both sync.WaitGroup
	both.Go(func() { c.run(agent); _ = w.Close() })
	both.Go(func() { c.run(sql); _ = r.Close() })
	both.Wait()
}

// kill ends a program when it is there.
func (c *chaos) kill(t *testing.T, name string) {
	t.Helper()
	if name == "postgres" {
		if c.target.postgres {
			require.NoError(t, cluster.kill())
			require.NoError(t, cluster.start())
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.processes[name]; p != nil {
		_ = p.Kill() // or it has just ended
	}
}

// position is where the table is; 0 where its database does not answer.
func (c *chaos) position(t *testing.T) int64 {
	t.Helper()
	rows, err := c.target.tryQuery(t.Context(), "SELECT stamp FROM ktrecords_position")
	if err != nil || len(rows) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(rows[0], 10, 64)
	require.NoError(t, err)
	return n
}

// write starts two writers.
func (c *chaos) write() {
	ctx, done := context.WithCancel(c.ctx)
	c.writersDone = done
	for w := range 2 {
		c.writers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for n := 0; ctx.Err() == nil; n++ {
				c.change(ctx, random, fmt.Sprintf("writer %d, change %d", w, n))
			}
		})
	}
}

// change sends one update; whether it is done is not of interest.
func (c *chaos) change(ctx context.Context, random *rand.Rand, value string) {
	key := fmt.Sprintf("key\x00%d", random.IntN(200))
	form := url.Values{"DB": {strconv.Itoa(random.IntN(2))}, "key": {key}}
	call := "remove"
	switch n := random.IntN(300); {
	case n == 0:
		call = "clear"
	case n > 60:
		call = "set"
		form.Set("value", value)
		form.Set("xt", "86400")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:"+c.port+"/rpc/"+call, strings.NewReader(form.Encode()))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

func (c *chaos) stopWriters() {
	c.writersDone()
	c.writers.Wait()
	http.DefaultClient.CloseIdleConnections()
}

func (c *chaos) stop() {
	c.cancel()
	c.writers.Wait()
	c.running.Wait()
}

// awaitEqual waits until the table has what the server has.
func (c *chaos) awaitEqual(t *testing.T) {
	t.Helper()
	var want []string
	for i := range 2 {
		var out []byte
		require.Eventually(t, func() bool {
			var err error
			out, err = c.command("ktremotemgr", "list", "-port", c.port, "-db", strconv.Itoa(i), "-pv", "-pt").Output()
			return err == nil
		}, limit, 50*time.Millisecond)
		for line := range bytes.Lines(out) {
			columns := strings.Split(strings.TrimSuffix(string(line), "\n"), "\t")
			want = append(want, fmt.Sprintf("%d %s %s %s", i, columns[0], columns[1], columns[2]))
		}
	}
	var have []string
	require.Eventually(t, func() bool {
		var err error
		have, err = c.target.tryQuery(t.Context(), "SELECT dbid, key, value, expires FROM ktrecords ORDER BY dbid, key")
		return err == nil && strings.Join(have, "\n") == strings.Join(want, "\n")
	}, limit, 50*time.Millisecond)
	require.NotEmpty(t, have)
}

// log is the server's update log.
func (c *chaos) log(t *testing.T) []string {
	t.Helper()
	out, err := c.command("ktremotemgr", "slave", "-port", c.port, "-sid", "65535").Output()
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// sets are the time stamps of the updates that set a record.
func (c *chaos) sets(log []string) (stamps []string) {
	for _, line := range log {
		if columns := strings.Split(line, "\t"); columns[3] == "set" {
			stamps = append(stamps, columns[0])
		}
	}
	return stamps
}
