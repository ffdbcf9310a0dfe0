package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"gotycoon/compat/history"
	"gotycoon/compat/ktproc"
	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/pg/pgtest"
	"gotycoon/internal/freeport"
	"gotycoon/internal/pgserver"
)

const (
	// patience is for what must come at last.
	patience = 60 * time.Second
	// soon is how long servers may take to answer after the last fault has been mended.
	soon = time.Minute

	engineTimeout = 4 // in seconds, -engine-timeout: a busy machine may stand still for one
)

// stage is servers on a PostgreSQL, to which faults happen.
type stage struct {
	t       *testing.T
	rnd     *rand.Rand
	bin     string
	script  string
	servers []*server
	play    *play

	database    string
	nodes       [2]*pgserver.Server // where the links of all servers lead
	primary     int                 // of nodes; the other one is the standby
	replication *link               // from the standby to the primary
	terms       int                 // promotions
}

// server is a ktserver. It can be killed and started again.
type server struct {
	index  int
	ports  history.Ports
	admin  int
	links  [2]*link
	proc   *ktproc.Server // nil: it does not run
	paused bool
	logs   string // the tail of what earlier processes have said
}

// newStage starts everything.
func newStage(t *testing.T, n int, rnd *rand.Rand) *stage {
	t.Helper()
	s := &stage{t: t, rnd: rnd, bin: ktproc.Build(t, "ktserver"), script: filepath.Join(t.TempDir(), "bank.lua")}
	require.NoError(t, os.WriteFile(s.script, []byte(bankScript), 0o600))
	s.nodes[0] = pgtest.Own(t, "wal_keep_size = 256MB", "wal_retrieve_retry_interval = 100ms")
	at, err := url.Parse(pgtest.Database(t, s.nodes[0]))
	require.NoError(t, err)
	s.database = strings.Trim(at.Path, "/")
	_, err = pg.Init(t.Context(), at.String(), pg.Setup{SID: 1, Log: true, Databases: []string{"shared"}})
	require.NoError(t, err)
	s.replication = newLink(t, s.nodes[0].Addr())
	s.addStandby()
	t.Cleanup(func() {
		if t.Failed() {
			s.tell()
		}
	})
	for i := range n {
		v := &server{index: i, ports: history.Ports{Main: freeport.Take(t), Memcached: freeport.Take(t)}, admin: freeport.Take(t)}
		for j, node := range s.nodes {
			v.links[j] = newLink(t, node.Addr())
		}
		s.servers = append(s.servers, v)
		s.launch(v)
	}
	s.serve(s.servers)
	return s
}

// launch starts a server and does not wait for it.
func (s *stage) launch(v *server) {
	s.t.Helper()
	engine := fmt.Sprintf("postgres://postgres@%s,%s/%s?sslmode=disable&connect_timeout=2", v.links[0].addr(), v.links[1].addr(), s.database)
	v.proc = ktproc.Launch(s.t, ktproc.Options{Bin: s.bin, Dir: s.t.TempDir(), BareDBs: true, Args: []string{
		"-pldb", engine, "-engine-timeout", strconv.Itoa(engineTimeout), "-engine-wait", strconv.Itoa(int(patience.Seconds())), "-scr", s.script, "-th", "64",
		"-plsv", "ktplugservmemc.so", "-plex", fmt.Sprintf("port=%d", v.ports.Memcached),
		"-admin", fmt.Sprintf("127.0.0.1:%d", v.admin), "-ls",
	}}, v.ports.Main)
}

// kill ends a server at once.
func (s *stage) kill(v *server) {
	v.logs = tail(v.logs + fmt.Sprintf("--- process %d\n%s", v.proc.PID(), v.proc.Output()))
	v.proc.Kill()
	v.proc, v.paused = nil, false
}

// alive fails the test if a server has ended by itself.
func (s *stage) alive() {
	s.t.Helper()
	for _, v := range s.servers {
		if v.proc == nil {
			continue
		}
		select {
		case <-v.proc.Exited():
			s.t.Fatalf("server %d has ended by itself", v.index)
		default:
		}
	}
}

// any returns a server that runs, nil for none.
func (s *stage) any() *server {
	for range 20 {
		if v := s.servers[s.rnd.IntN(len(s.servers))]; v.proc != nil && !v.paused {
			return v
		}
	}
	return nil
}

// some are the links of one server, or of all.
func (s *stage) some() (links []*link) {
	all, one := s.rnd.IntN(3) == 0, s.servers[s.rnd.IntN(len(s.servers))]
	for _, v := range s.servers {
		if all || v == one {
			links = append(links, v.links[:]...)
		}
	}
	return links
}

// addStandby gives the primary a synchronous standby in the place of the other node.
func (s *stage) addStandby() {
	s.t.Helper()
	s.replication.lead(s.nodes[s.primary].Addr())
	b := pgtest.Standby(s.t, s.nodes[s.primary])
	host, port, err := net.SplitHostPort(s.replication.addr())
	require.NoError(s.t, err)
	require.NoError(s.t, b.Configure(fmt.Sprintf(
		"primary_conninfo = 'host=%s port=%s user=postgres application_name=standby sslmode=disable'", host, port)))
	s.nodes[1-s.primary] = b
	for _, v := range s.servers {
		v.links[1-s.primary].lead(b.Addr())
	}
	s.inStep()
}

// inStep waits until the standby has all that was acknowledged, and is waited for from now on.
func (s *stage) inStep() {
	s.t.Helper()
	// "primary_conninfo" may still change; the primary's checkpointer is who tells the others that
	// there is a standby to wait for; and a commit behind all that is the proof.
	s.ask(func(ctx context.Context, c *pgx.Conn) (is bool, err error) {
		from := s.nodes[1-s.primary]
		b, err := pgx.Connect(ctx, from.URL("postgres"))
		if err != nil {
			return false, err
		}
		defer b.Close(ctx)
		_, port, _ := net.SplitHostPort(s.replication.addr())
		err = b.QueryRow(ctx, "SELECT count(*) = 1 FROM pg_stat_wal_receiver WHERE status = 'streaming' AND sender_port = $1::int", port).Scan(&is)
		if err != nil || !is {
			return false, err
		}
		if err := c.QueryRow(ctx, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'").Scan(&is); err != nil || !is {
			return false, err
		}
		if _, err := c.Exec(ctx, "CHECKPOINT"); err != nil {
			return false, err
		}
		_, err = c.Exec(ctx, "SELECT txid_current()")
		return err == nil, err
	})
}

// ask asks the primary until the answer is yes.
func (s *stage) ask(question func(ctx context.Context, c *pgx.Conn) (bool, error)) {
	s.t.Helper()
	var last error
	try := func() bool {
		ctx, end := context.WithTimeout(context.Background(), 5*time.Second)
		defer end()
		c, err := pgx.Connect(ctx, s.nodes[s.primary].URL("postgres"))
		if last = err; err != nil {
			return false
		}
		defer c.Close(ctx)
		var is bool
		is, last = question(ctx, c)
		return is && last == nil
	}
	if !eventually(patience, try) {
		s.t.Fatalf("the standby is not in step: %v", last)
	}
}

// serve waits until each of some servers takes updates and is ready, and returns how long it took.
func (s *stage) serve(servers []*server) time.Duration {
	s.t.Helper()
	began := time.Now()
	for _, v := range servers {
		said := "nothing"
		if !eventually(soon, func() bool {
			s.alive()
			var ready bool
			if ready, said = v.ready(); !ready {
				return false
			}
			w, err := history.DialHTTP(v.ports.Main, time.Second)
			if err != nil {
				return false
			}
			defer w.Close()
			return w.Ask(history.Call{Verb: history.Set, Key: "serves", Value: "yes"}).Certainty == history.Done
		}) {
			s.t.Fatalf("server %d does not take updates %v after the last fault, /readyz: %s", v.index, soon, said)
		}
	}
	return time.Since(began)
}

// ready asks /readyz.
func (v *server) ready() (is bool, said string) {
	w, err := history.DialHTTP(v.admin, time.Second)
	if err != nil {
		return false, err.Error()
	}
	defer w.Close()
	status, text, err := w.Get("/readyz")
	if err != nil {
		return false, err.Error()
	}
	return status == http.StatusOK, fmt.Sprint(status, " ", text)
}

// eventually asks until the answer is yes.
func eventually(limit time.Duration, is func() bool) bool {
	for until := time.Now().Add(limit); time.Now().Before(until); {
		if is() {
			return true
		}
		time.Sleep(10 * time.Millisecond) //lint:sleep another process has to get there
	}
	return false
}

func (s *stage) signal(v *server, sig syscall.Signal) {
	v.proc.Signal(s.t, sig)
	v.paused = sig == syscall.SIGSTOP
}

// tell prints the ends of the servers' logs.
func (s *stage) tell() {
	for _, v := range s.servers {
		logs := v.logs
		if v.proc != nil {
			logs += v.proc.Output()
		}
		s.t.Logf("server %d has said:\n%s", v.index, tail(logs))
	}
}

// tail is as much of a log as is worth printing.
func tail(text string) string { return text[max(0, len(text)-8000):] }
