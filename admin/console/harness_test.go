package console_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/internal/freeport"
	"gotycoon/internal/klog/klogtest"
	"gotycoon/server"
)

// running is a server in this process.
type running struct {
	t       *testing.T
	cfg     server.Config
	data    string // address of the data port
	console string // address of the admin listener

	log    lines
	cancel context.CancelFunc
	exit   chan int
}

// lines is a log that is shown when something goes wrong.
type lines = klogtest.Buffer

// start runs a server with all its parts, unless change says otherwise.
func start(t *testing.T, change func(*server.Config)) *running {
	t.Helper()
	dir := t.TempDir()
	cfg := server.DefaultConfig()
	cfg.Host, cfg.Port, cfg.ServerID = "127.0.0.1", freeport.Take(t), 1
	cfg.Databases = []string{filepath.Join(dir, "people.kct"), filepath.Join(dir, "sessions.kch"), "*", ":", "%"}
	cfg.UpdateLog = filepath.Join(dir, "ulog")
	cfg.Snapshots.Dir, cfg.Snapshots.Compressor = filepath.Join(dir, "snapshots"), "zstd"
	cfg.Services.Database = filepath.Join(dir, "services.kct")
	cfg.Services.CounterPort, cfg.Services.LockPort = freeport.Take(t), freeport.Take(t)
	cfg.Services.SequencePort, cfg.Services.QuotaPort, cfg.Services.Limit = freeport.Take(t), freeport.Take(t), 10_000
	cfg.Admin.Addr, cfg.Admin.Slow = freeport.Addr(t), 500*time.Microsecond
	cfg.Reload.Settings = []server.Setting{
		{Name: "host", Value: cfg.Host, Source: "command line"},
		{Name: "port", Value: fmt.Sprint(cfg.Port), Source: "command line"},
		{Name: "tout", Value: "30", Source: "default", Reload: true},
		{Name: "tls-key", Source: "/etc/gotycoon.toml:12", Secret: true},
	}
	if change != nil {
		change(&cfg)
	}
	s := &running{t: t, cfg: cfg, exit: make(chan int, 1)}
	s.begin()
	t.Cleanup(func() { require.Zero(t, s.stop()) })
	return s
}

// between is the configuration of a server with a master and a follower, which it starts too. They
// begin when it does.
func between(t *testing.T) func(*server.Config) {
	t.Helper()
	dir := t.TempDir()
	bare := func(name string, sid int) func(*server.Config) {
		return func(c *server.Config) {
			c.Databases, c.ServerID, c.UpdateLog = []string{":"}, sid, filepath.Join(dir, name)
			c.Snapshots.Dir, c.Services, c.Admin = "", server.ServicesConfig{}, server.AdminConfig{}
		}
	}
	master := start(t, bare("master", 10))
	return func(c *server.Config) {
		c.MasterHost, c.MasterPort, c.RTSPath = "127.0.0.1", master.cfg.Port, filepath.Join(dir, "middle.rts")
		port := c.Port
		start(t, func(f *server.Config) {
			bare("follower", 20)(f)
			f.Port = freeport.Take(t)
			f.MasterHost, f.MasterPort, f.RTSPath = "127.0.0.1", port, filepath.Join(dir, "follower.rts")
		})
	}
}

// begin starts the server, on the ports that it had.
func (s *running) begin() {
	s.t.Helper()
	listening := make(chan net.Addr, 1)
	cfg := s.cfg
	cfg.Listening = func(a net.Addr) { listening <- a }
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.console = cancel, cfg.Admin.Addr
	go func() { s.exit <- server.Run(ctx, cfg, &s.log, &s.log) }()
	select {
	case a := <-listening:
		s.data = a.String()
	case code := <-s.exit:
		s.t.Fatalf("the server has ended with %d:\n%s", code, s.log.String())
	case <-time.After(patience):
		s.t.Fatal("the server does not start")
	}
}

// stop ends the server and returns its exit code. Stopping twice is fine.
func (s *running) stop() int {
	if s.cancel == nil {
		return 0
	}
	s.cancel()
	s.cancel = nil
	select {
	case code := <-s.exit:
		return code
	case <-time.After(patience):
		s.t.Error("the server does not stop")
		return -1
	}
}

// store fills the databases with what one might have.
func (s *running) store() {
	s.t.Helper()
	ctx := s.t.Context()
	c := client.New(s.data, client.Options{})
	defer c.Close()
	people := map[string][]byte{}
	names := []string{"Ada Lovelace", "Alan Turing", "Barbara Liskov", "Edsger Dijkstra", "Grace Hopper", "Katherine Johnson", "Niklaus Wirth", "Radia Perlman"}
	for i := range 1200 {
		name := names[i%len(names)]
		people[fmt.Sprintf("person:%05d", i)] = fmt.Appendf(nil, "name\t%s\ncity\t%s\nvisits\t%d\n", name, []string{"London", "Zürich", "Kyōto", "Austin"}[i%4], i*37%911)
	}
	people["document:greeting"] = []byte("Grüezi! This is a text\nwith two lines.")
	people["blob:\x00\x01\xff"] = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00")
	people["html:<b>"] = []byte("<script>alert('never')</script>")
	_, err := c.DB("0").SetBulk(ctx, people, client.Never, true)
	require.NoError(s.t, err)
	sessions := map[string][]byte{}
	for i := range 400 {
		sessions[fmt.Sprintf("session:%016x", uint64(i)*0x9e3779b97f4a7c15)] = fmt.Appendf(nil, `{"user":%d,"seen":"2026-11-21T10:%02d:00Z"}`, i%97, i%60)
	}
	for _, db := range []string{"1", "2", "3", "4"} {
		_, err := c.DB(db).SetBulk(ctx, sessions, client.In(90*time.Minute), true)
		require.NoError(s.t, err)
	}
}

// keep holds locks and counters, uses quotas and sequences, until the test ends.
func (s *running) keep() {
	s.t.Helper()
	s.awaitPrimary()
	ctx := s.t.Context()
	locks := client.NewLocks(s.at(s.cfg.Services.LockPort), client.Options{})
	for _, key := range []string{"invoice/4711", "nightly-report", "warehouse/7/shelf/3"} {
		held, err := locks.Acquire(ctx, key, client.LockOptions{})
		require.NoError(s.t, err)
		s.t.Cleanup(func() { _ = held.Release(context.Background()) })
	}
	s.waiter(locks, "invoice/4711")
	counters, err := client.DialCounters(ctx, s.at(s.cfg.Services.CounterPort), client.Options{})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = counters.Close() })
	for i, name := range []string{"connections/db-1", "connections/db-2", "licences/editor", "uploads/eu"} {
		require.NoError(s.t, counters.Acquire(ctx, name, uint32(3+i*5), 100))
	}
	require.NoError(s.t, counters.Release(ctx, "licences/editor", 9))
	orders := client.NewSequence(s.at(s.cfg.Services.SequencePort), "orders", client.Options{})
	_, err = orders.Fetch(ctx, 5)
	require.NoError(s.t, err)
	quota := client.NewQuota(s.at(s.cfg.Services.QuotaPort), "seats", client.Options{})
	_, err = quota.Increase(ctx, 250, "")
	require.NoError(s.t, err)
	_, _, err = quota.Apply(ctx, 30, "")
	require.NoError(s.t, err)
}

// awaitPrimary waits until the server gives out fencing tokens and changes quotas: one with a
// master hears first from that whether another server does.
func (s *running) awaitPrimary() {
	s.t.Helper()
	c := client.New(s.data, client.Options{})
	defer c.Close()
	require.Eventually(s.t, func() bool {
		rows, err := c.Report(s.t.Context())
		return err == nil && string(rows["serv_primary"]) == "true"
	}, patience, 10*time.Millisecond)
}

// waiter waits for a lock that somebody holds.
func (s *running) waiter(locks *client.Locks, key string) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = locks.Acquire(ctx, key, client.LockOptions{Wait: -1}) // in vain
	}()
	s.t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func (s *running) at(port int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(port)) }

// busy sends requests until the test ends or done is called.
func (s *running) busy() (done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for worker := range 3 {
		workers.Go(func() {
			c := client.New(s.data, client.Options{})
			defer c.Close()
			tick := time.NewTicker(time.Duration(worker+1) * 2 * time.Millisecond)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				key := fmt.Sprintf("person:%05d", i*7%1200)
				switch { // what goes wrong while the server stops does not matter
				case worker == 0:
					_, _ = c.DB("0").Get(ctx, key)
				case worker == 1:
					_ = c.DB("4").Set(ctx, key, []byte(time.Now().String()), client.In(time.Hour))
				default:
					records := map[string][]byte{}
					for j := range 20 + i%200 {
						records[fmt.Sprintf("busy:%d", j)] = []byte("x")
					}
					_, _ = c.DB("3").SetBulk(ctx, records, client.In(time.Minute), false)
				}
			}
		})
	}
	var once sync.Once
	done = func() {
		once.Do(func() {
			cancel()
			workers.Wait()
		})
	}
	s.t.Cleanup(done)
	return done
}
