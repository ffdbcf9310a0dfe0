package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ktclient "gotycoon/client"
	"gotycoon/client/wire/frame"
	"gotycoon/internal/freeport"
	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/faultfs"
	"gotycoon/server"
	"gotycoon/ulog"
)

// Members have so much time because several of them share a machine with other tests: the others
// elect anew when a primary gets no processor for longer, or no fsync returns.
const (
	electionTimeout = 1200 * time.Millisecond
	diskTimeout     = 3 * time.Second
)

// clusterOf are servers in this process that elect their primary.
type clusterOf struct {
	t       *testing.T
	dir     string
	addrs   []string
	members string
	servers []*running // nil where one is stopped
	admins  []string   // addresses of the admin listeners; nil: there are none
	disks   []*faultfs.FS
	change  func(*server.Config) // of each member; nil: nothing
}

// startElected runs n members and waits for a primary. A member with a number in witnesses has no
// data.
func startElected(t *testing.T, n int, witnesses ...int) *clusterOf {
	t.Helper()
	return startElectedWith(t, nil, n, witnesses...)
}

// startElectedWith is startElected with other options for all members.
func startElectedWith(t *testing.T, change func(*server.Config), n int, witnesses ...int) *clusterOf {
	t.Helper()
	c := newElected(t, n, witnesses...)
	c.change = change
	for i := range n {
		c.start(i)
	}
	c.primary()
	return c
}

// newElected returns members that do not run yet.
func newElected(t *testing.T, n int, witnesses ...int) *clusterOf {
	t.Helper()
	c := &clusterOf{t: t, dir: t.TempDir(), servers: make([]*running, n)}
	c.secret()
	var list []string
	for i := range n {
		c.disks = append(c.disks, faultfs.New(vfs.OS{}))
		c.addrs = append(c.addrs, freeport.Addr(t))
		entry := c.addrs[i]
		for _, w := range witnesses {
			if w == i {
				entry += "/witness"
			}
		}
		list = append(list, entry)
	}
	c.members = strings.Join(list, ",")
	return c
}

func (c *clusterOf) secret() {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(filepath.Join(c.dir, "secret"), []byte(strings.Repeat("secret", 10)), 0o600))
}

func (c *clusterOf) start(i int) {
	c.t.Helper()
	c.servers[i] = start(c.t, func(cfg *server.Config) { c.configure(cfg, i) })
}

func (c *clusterOf) configure(cfg *server.Config, i int) {
	_, port, err := net.SplitHostPort(c.addrs[i])
	require.NoError(c.t, err)
	_, err = fmt.Sscan(port, &cfg.Port)
	require.NoError(c.t, err)
	cfg.Host = "127.0.0.1"
	cfg.Cluster = server.ClusterConfig{Name: "test", Members: c.members, Timeout: electionTimeout, Dir: filepath.Join(c.dir, fmt.Sprint(i), "cluster")}
	cfg.Members.Secret = filepath.Join(c.dir, "secret")
	if c.admins != nil {
		cfg.Admin.Addr = c.admins[i]
	}
	if i < len(c.disks) {
		cfg.FS, cfg.Cluster.DiskTimeout = c.disks[i], diskTimeout
	}
	if !strings.Contains(c.members, c.addrs[i]+"/witness") {
		cfg.UpdateLog, cfg.ServerID = filepath.Join(c.dir, fmt.Sprint(i), "ulog"), i+1
		cfg.Databases = []string{filepath.Join(c.dir, fmt.Sprint(i), "a.kct")}
	}
	if c.change != nil {
		c.change(cfg)
	}
}

func (c *clusterOf) stop(i int) {
	c.t.Helper()
	require.Zero(c.t, c.servers[i].stop())
	c.servers[i] = nil
}

// roles returns the role of each member that runs, by its number, as one that runs knows it.
func (c *clusterOf) roles() map[int]string {
	roles := map[int]string{}
	for _, s := range c.servers {
		if s == nil {
			continue
		}
		for name, value := range s.cluster() {
			for i, addr := range c.addrs {
				if name == addr {
					if roles[i], _, _ = strings.Cut(strings.TrimPrefix(value, "role="), " "); strings.Contains(value, "incomplete=") {
						roles[i] = "incomplete"
					}
				}
			}
		}
		return roles
	}
	return roles
}

// primary returns the number of the member that leads, when all others that run follow it.
func (c *clusterOf) primary() (leads int) {
	c.t.Helper()
	defer func() {
		if leads < 0 {
			c.tell()
		}
	}()
	eventually(c.t, func() bool {
		leads = -1
		for i, role := range c.roles() {
			switch {
			case c.servers[i] == nil || role == "witness":
			case role == "leading" && leads < 0:
				leads = i
			case role != "following":
				return false
			}
		}
		return leads >= 0
	})
	return leads
}

// tell shows what the members that run say of the cluster, and the ends of their logs.
func (c *clusterOf) tell() {
	for i, s := range c.servers {
		if s != nil {
			lines := s.log.lines()
			c.t.Logf("member %d: %v\n%s", i, s.cluster(), strings.Join(lines[max(0, len(lines)-30):], "\n"))
		}
	}
}

// ask returns the rows of an answer, and status its status, on a connection that ends at once:
// tests ask a thousand times a second.
func (s *running) ask(path string) map[string]string {
	k := s.dial()
	defer k.Close()
	rows := map[string]string{}
	for name, value := range k.rows(path) {
		if strings.Contains(name, "%") { // a value has characters for which all columns are encoded
			name, _ = url.PathUnescape(name)
			value, _ = url.PathUnescape(value)
		}
		rows[name] = value
	}
	return rows
}

// cluster returns what a server says of the members. Long texts come in an encoding.
func (s *running) cluster() map[string]string {
	k := ktclient.New(s.addr, ktclient.Options{Timeout: patience})
	defer k.Close()
	rows, err := k.ClusterStatus(context.Background())
	require.NoError(s.t, err)
	all := map[string]string{}
	for name, value := range rows {
		all[name] = string(value)
	}
	return all
}

// status is the status of the answer to a request, 0 where the server ends the connection without
// one, as when its role changes.
func (s *running) status(path string) int {
	k := s.dial()
	defer k.Close()
	_, _ = io.WriteString(k, "GET "+path+" HTTP/1.1\r\n\r\n")
	r, err := http.ReadResponse(k.in, nil)
	if err != nil {
		return 0
	}
	r.Body.Close()
	return r.StatusCode
}

func (c *clusterOf) client(i int) *ktclient.Client {
	k := ktclient.New(c.addrs[i], ktclient.Options{Timeout: patience})
	c.t.Cleanup(func() { k.Close() })
	return k
}

func (c *clusterOf) holds(i int, keys ...string) {
	c.t.Helper()
	for _, key := range keys {
		eventually(c.t, func() bool { return c.servers[i].status("/rpc/get?key="+key) == 200 })
	}
}

func TestAClusterGoesOnWithoutItsPrimary(t *testing.T) {
	c := startElected(t, 3)
	var keys []string
	for range 3 {
		p := c.primary()
		key := fmt.Sprint("k", len(keys))
		status, body := c.servers[p].dial().get("/rpc/set?value=1&key=" + key)
		require.Equal(t, 200, status, body)
		keys = append(keys, key)
		c.stop(p)
		c.holds(c.primary(), keys...)
		c.start(p)
	}
	c.primary()
	for i := range c.servers {
		c.holds(i, keys...)
	}
}

func TestAFollowerOfAClusterTakesNoUpdatesAndNoOrders(t *testing.T) {
	c := startElected(t, 3)
	f := (c.primary() + 1) % 3
	k := c.servers[f].dial()
	status, _ := k.get("/rpc/set?key=a&value=1")
	require.NotEqual(t, 200, status)
	status, body := k.get("/rpc/tune_replication?host=127.0.0.1&port=1")
	require.Equal(t, 501, status, "as for a server that cannot replicate")
	require.Contains(t, body, "the cluster decides")
	require.Equal(t, "following", c.roles()[f])
}

func TestASwitchoverLosesNothingAndAnswers(t *testing.T) {
	c := startElected(t, 3)
	for range 4 {
		p := c.primary()
		to := (p + 1) % 3
		idle := c.servers[p].dial()
		status, body := idle.get("/rpc/set?key=a&value=1")
		require.Equal(t, 200, status, body)
		require.NoError(t, c.client(p).ChangeCluster(context.Background(), ktclient.ClusterChange{Do: "switchover", Name: c.addrs[to]}))
		require.Equal(t, to, c.primary())
		_, err := idle.in.ReadByte()
		require.Error(t, err, "a client of the former primary stays connected")
		c.holds(to, "a")
	}
}

func TestTwoMembersAndAWitness(t *testing.T) {
	c := startElected(t, 3, 2)
	p := c.primary()
	status, body := c.servers[p].dial().get("/rpc/set?key=a&value=1")
	require.Equal(t, 200, status, body)
	other := 1 - p
	c.stop(p)
	eventually(t, func() bool { role := c.roles()[other]; return role == "opening" || role == "leading" })
	status, _ = c.servers[other].dial().get("/rpc/set?key=b&value=1")
	require.NotEqual(t, 200, status, "nobody else has the update")
	ctx := context.Background()
	require.NoError(t, c.client(other).ChangeCluster(ctx, ktclient.ClusterChange{Do: "require", Number: 0}))
	eventually(t, func() bool { return c.servers[other].status("/rpc/set?key=b&value=1") == 200 })
	c.start(p)
	c.holds(p, "a", "b")
	require.NoError(t, c.client(other).ChangeCluster(ctx, ktclient.ClusterChange{Do: "require", Number: 1}))
}

func TestAServerJoinsAndAnotherLeaves(t *testing.T) {
	c := startElected(t, 3)
	p := c.primary()
	for i := range 100 {
		status, body := c.servers[p].dial().get(fmt.Sprintf("/rpc/set?key=k%d&value=1", i))
		require.Equal(t, 200, status, body)
	}
	c.addrs, c.servers = append(c.addrs, freeport.Addr(t)), append(c.servers, nil)
	c.servers[3] = start(t, func(cfg *server.Config) {
		c.configure(cfg, 3)
		cfg.Cluster.Members, cfg.Cluster.Join, cfg.Cluster.Advertise = "", true, c.addrs[3]
	})
	ctx := context.Background()
	require.NoError(t, c.client(p).ChangeCluster(ctx, ktclient.ClusterChange{Do: "add", Name: c.addrs[3]}))
	eventually(t, func() bool { return c.roles()[3] == "following" })
	c.holds(3, "k0", "k99")
	gone := (p + 1) % 3
	require.NoError(t, c.client(p).ChangeCluster(ctx, ktclient.ClusterChange{Do: "remove", Name: c.addrs[gone]}))
	eventually(t, func() bool { _, known := c.roles()[gone]; return !known || gone == 0 })
	eventually(t, func() bool {
		rows := c.servers[p].cluster()
		return len(rows) == 3 && rows[c.addrs[gone]] == ""
	})
	err := c.client(p).ChangeCluster(ctx, ktclient.ClusterChange{Do: "remove", Name: c.addrs[p]})
	require.ErrorContains(t, err, "switch over to another one first")
}

func TestTheClusterOptionsAreChecked(t *testing.T) {
	c := &clusterOf{t: t, dir: t.TempDir(), addrs: []string{"127.0.0.1:19780"}, members: "127.0.0.1:19780,127.0.0.1:19781"}
	c.secret()
	const addr = "127.0.0.1:19780"
	for _, wrong := range []struct {
		why    string
		change func(*server.Config)
	}{
		{"need -cluster NAME", func(cfg *server.Config) { cfg.Cluster.Name = "" }},
		{"-members HOST:PORT", func(cfg *server.Config) { cfg.Cluster.Members = "" }},
		{"which of the -members", func(cfg *server.Config) { cfg.Port = 1 }},
		{"not among the -members", func(cfg *server.Config) { cfg.Cluster.Advertise = "127.0.0.1:1" }},
		{"no port", func(cfg *server.Config) { cfg.Cluster.Members = "127.0.0.1:19780,127.0.0.1:x" }},
		{"-mhost", func(cfg *server.Config) { cfg.MasterHost, cfg.RTSPath = "127.0.0.1", "rts" }},
		{"-ulog", func(cfg *server.Config) { cfg.UpdateLog = "" }},
		{"-cluster-secret", func(cfg *server.Config) { cfg.Members.Secret = "" }},
		{"the database in memory (:), which a server has when none is named: a database of a cluster must survive the process", func(cfg *server.Config) { cfg.Databases = []string{":"} }},
		{"-members: PEER stands there twice", func(cfg *server.Config) { cfg.Cluster.Members += "," + addr }},
		{"a comma too many", func(cfg *server.Config) { cfg.Cluster.Members += "," }},
		{`"/witnes" stands behind PEER, where only /witness may follow`, func(cfg *server.Config) { cfg.Cluster.Members = addr + "/witnes" }},
		{"-sync-replicas 7: there are 1 other members", func(cfg *server.Config) { cfg.Sync.Replicas = 7 }},
		{"in a cluster the members decide whom this server follows", func(cfg *server.Config) { cfg.MasterHost = "127.0.0.1" }},
		{"a witness of its cluster, which keeps no data and serves no clients: start it without databases", func(cfg *server.Config) {
			cfg.Cluster.Members = addr + "/witness,127.0.0.1:1"
		}},
		{"start it without -ulog", func(cfg *server.Config) {
			cfg.Cluster.Members, cfg.Databases = addr+"/witness,127.0.0.1:1", []string{":"}
		}},
		{"start it without memcached", func(cfg *server.Config) {
			cfg.Cluster.Members, cfg.Databases, cfg.UpdateLog, cfg.Plugins.MemcachePort = addr+"/witness,127.0.0.1:1", []string{":"}, "", 1
		}},
		{"start it without the ports of services", func(cfg *server.Config) {
			cfg.Cluster.Members, cfg.Databases, cfg.UpdateLog, cfg.Services.CounterPort = addr+"/witness,127.0.0.1:1", []string{":"}, "", 1
		}},
		{"-election-timeout", func(cfg *server.Config) { cfg.Cluster.Timeout = time.Millisecond }},
		{"-disk-timeout", func(cfg *server.Config) { cfg.Cluster.DiskTimeout = time.Millisecond }},
		{"-cluster-etcd", func(cfg *server.Config) { cfg.Cluster.Etcd = "x" }},
	} {
		cfg := server.DefaultConfig()
		c.configure(&cfg, 0)
		wrong.change(&cfg)
		var stderr buffer
		require.Equal(t, 1, server.Run(context.Background(), cfg, &stderr, &stderr), wrong.why)
		require.Contains(t, strings.Join(stderr.lines(), "\n"), wrong.why)
	}
}

// Whoever may replicate could say that it is a member and has everything: only a server that has
// proved to be one counts.
func TestAStrangerAcknowledgesNothingForAMember(t *testing.T) {
	c := startElected(t, 3, 2)
	p := c.primary()
	other := 1 - p
	c.stop(other)
	k := c.servers[p].dial()
	_, err := k.Write(frame.AppendFollow(nil, frame.Follow{Flags: frame.Extended, TS: uint64(ulog.StampAt(time.Now())), SID: uint16(other + 1)}))
	require.NoError(t, err)
	first, err := k.in.ReadByte()
	require.NoError(t, err)
	require.Equal(t, byte(frame.Replication), first)
	beats := make(chan struct{}, 1000)
	go func() {
		var got []byte
		for {
			b, err := k.in.ReadByte()
			if err != nil {
				return
			}
			got = append(got, b)
			m, n, err := frame.DecodeMessage(got)
			if err != nil {
				continue
			}
			if got = got[n:]; m.Magic == frame.Heartbeat {
				_, _ = k.Write([]byte{byte(frame.Ack)})
				beats <- struct{}{}
			}
		}
	}()
	<-beats
	status, body := c.servers[p].dial().get("/rpc/set?key=a&value=1")
	require.NotEqual(t, 200, status, body)
}
