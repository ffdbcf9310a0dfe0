package cluster

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/history"
	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

// member is a server of the cluster. It can be killed and started again with what it has on disk.
type member struct {
	cluster *cluster
	index   int
	name    string // its address for the others
	witness bool
	dir     string
	own     bool // the directory is a small disk of its own
	filled  bool // and was full
	gone    bool // it is no member any more
	list    string
	ahead   time.Duration // how far its clock is ahead
	port    int
	memc    int // the port for memcached clients
	ports   servicePorts
	end     *end

	proc *ktproc.Server // nil: it does not run
	logs string         // the tail of what its earlier processes have said
}

// cluster is the members and the network between them.
type cluster struct {
	t       *testing.T
	net     *network
	members []*member
	secret  string
	leaders map[string]int // by term: who led

	etcd    string               // address of the etcd that holds the votes; empty: the members
	certs   string               // directory of certificates for TLS between the members; empty: none
	fronts  map[string]*balancer // one address for each service; nil: there are none
	numbers ledgerOfNumbers      // what the services have given out
	issued  map[string]int       // how often
}

// servicePorts are the ports of a member's services; 0: there is none.
type servicePorts struct{ Lock, Sequence, Counter int }

// newCluster starts a cluster of so many members with data, and a witness.
func newCluster(t *testing.T, data int, witness bool) *cluster {
	t.Helper()
	c := prepareCluster(t, data, witness)
	c.begin()
	return c
}

// prepareCluster is newCluster, and the members do not run yet.
func prepareCluster(t *testing.T, data int, witness bool) *cluster {
	t.Helper()
	c := &cluster{t: t, net: newNetwork(t), leaders: map[string]int{}, numbers: ledgerOfNumbers{}, issued: map[string]int{}}
	c.secret = filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(c.secret, []byte("0123456789abcdef0123456789abcdef\n"), 0o600))
	for range data {
		c.add(false)
	}
	if witness {
		c.add(true)
	}
	return c
}

// begin starts the members.
func (c *cluster) begin() {
	c.t.Helper()
	list := c.list()
	for _, m := range c.members {
		m.start(list)
	}
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.tell("the test has failed")
		}
	})
}

// serve gives all members services, which have one address each for all clients.
func (c *cluster) serve() {
	c.fronts = map[string]*balancer{}
	for _, m := range c.members {
		m.ports = servicePorts{freeport.Take(c.t), freeport.Take(c.t), freeport.Take(c.t)}
	}
	for _, s := range services {
		var ports []int
		for _, m := range c.data() {
			ports = append(ports, s.port(m))
		}
		c.fronts[s.name] = newBalancer(c.t, ports...)
	}
}

// add makes a member, which does not run yet.
func (c *cluster) add(witness bool) *member {
	m := &member{cluster: c, index: len(c.members), witness: witness, port: freeport.Take(c.t), memc: freeport.Take(c.t)}
	m.dir, m.own = newDisk(c.t)
	m.end, m.name = c.net.add(m.addr())
	c.members = append(c.members, m)
	return m
}

// list is the option -members.
func (c *cluster) list() string {
	var names []string
	for _, m := range c.members {
		name := m.name
		if m.witness {
			name += "/witness"
		}
		names = append(names, name)
	}
	return strings.Join(names, ",")
}

// data are the members with data.
func (c *cluster) data() (all []*member) {
	for _, m := range c.members {
		if !m.witness && !m.gone {
			all = append(all, m)
		}
	}
	return all
}

func (m *member) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port)) }

// reach returns the ports for clients.
func (m *member) reach() history.Ports { return history.Ports{Main: m.port, Memcached: m.memc} }

// start starts the process; it need not be the first one. list is empty for a server that joins.
func (m *member) start(list string) {
	t := m.cluster.t
	t.Helper()
	s := settings{Name: m.name, Members: list, Secret: m.cluster.secret, Memcached: m.memc, Ahead: m.ahead, Services: m.ports, Etcd: m.cluster.etcd, Certs: m.cluster.certs, Disk: soundTimeout}
	if m.own {
		s.Disk = diskTimeout
	}
	if !m.witness {
		s.SID = m.index + 1
	}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	m.proc = ktproc.Launch(t, ktproc.Options{Bin: exe, Dir: m.dir, BareDBs: true, Env: []string{variable + "=" + string(text)}}, m.port)
	m.end.pid.Store(int64(m.proc.PID()))
	m.list = list
	require.True(t, m.proc.AwaitListening(), "member %d does not listen: %s", m.index, m.proc.Output())
}

// restart starts the process as the last time, with a disk that has room.
func (m *member) restart() {
	m.cluster.t.Helper()
	m.empty()
	m.start(m.list)
}

// revive starts the process again if a full disk has ended it.
func (m *member) revive() {
	m.cluster.t.Helper()
	if m.filled && m.ended() {
		m.restart()
	}
}

// ended reports whether the process has ended by itself, and forgets it.
func (m *member) ended() bool {
	if m.proc == nil {
		return false
	}
	select {
	case <-m.proc.Exited():
		m.stop(true)
		return true
	default:
		return false
	}
}

// stop ends the process: at once, or as an operator does.
func (m *member) stop(kill bool) {
	m.cluster.t.Helper()
	if m.proc == nil || !kill && m.ended() { // a full disk ends a server
		return
	}
	if kill {
		m.proc.Kill()
	} else {
		m.proc.Stop(m.cluster.t)
	}
	m.keep()
	m.proc = nil
	m.end.pid.Store(0)
}

func (m *member) signal(sig syscall.Signal) { m.proc.Signal(m.cluster.t, sig) }

// keep remembers what the process that runs, or ran, has said.
func (m *member) keep() {
	m.cluster.note(m.index, m.proc.Output())
	m.logs = tail(m.logs+m.said(), shown)
}

// said returns what the process has said, without the lines about clients.
func (m *member) said() string {
	return fmt.Sprintf("--- process %d\n%s", m.proc.PID(), chatter.ReplaceAllString(m.proc.Output(), ""))
}

// chatter are the lines about clients.
var chatter = regexp.MustCompile(`(?m)^.*(\(127\.0\.0\.1:\d+\)|connected: expr|disconnecting: expr|permission denied|database error|connecting to the member|DEBUG]: election: .* (sent|received|has received|cast|ignored|rejected) ).*\n`)

var leading = regexp.MustCompile(`this member is (?:opening|leading) \(term (\d+)\)`)

// note looks for terms that have two primaries.
func (c *cluster) note(member int, log string) {
	for _, found := range leading.FindAllStringSubmatch(log, -1) {
		if other, known := c.leaders[found[1]]; known && other != member {
			c.t.Errorf("term %s has two primaries, the members %d and %d", found[1], other, member)
		}
		c.leaders[found[1]] = member
	}
}

// tell prints the logs of the members.
func (c *cluster) tell(why string) {
	for _, m := range c.members {
		logs := m.logs
		if m.proc != nil {
			logs += m.said()
		}
		c.t.Logf("%s: member %d (%s, data port %d) has said:\n%s", why, m.index, m.name, m.port, tail(logs, shown))
	}
}

// shown is how much of a member's log is printed, in bytes.
const shown = 20_000

func tail(text string, size int) string { return text[max(0, len(text)-size):] }
