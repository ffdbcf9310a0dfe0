package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ktclient "gotycoon/client"
	"gotycoon/internal/freeport"
	"gotycoon/server"
)

// trouble returns what a member says is wrong with it.
func (c *clusterOf) trouble(i int) string {
	_, text, _ := strings.Cut(c.servers[i].cluster()[c.addrs[i]], "trouble=")
	return text
}

// quiet requires that a server has logged none of the errors of single requests.
func (c *clusterOf) quiet(i int) {
	c.t.Helper()
	require.NotContains(c.t, strings.Join(c.servers[i].log.lines(), "\n"), "database error")
}

// Whoever asks the wrong member is told which one is right.
func TestAFollowerTellsWhoIsThePrimary(t *testing.T) {
	c := startElected(t, 3)
	p := c.primary()
	f := (p + 1) % 3
	status, body := c.servers[f].dial().get("/rpc/set?key=a&value=1")
	require.Equal(t, http.StatusInternalServerError, status, "as of a read-only server")
	require.Contains(t, body, "DB: 4: no permission: this member of the cluster follows the primary "+c.addrs[p])
	c.quiet(f)
	began := time.Now()
	_, err := c.client(f).WaitReplicas(context.Background(), 1, 0, time.Minute)
	require.ErrorContains(t, err, "this server follows "+c.addrs[p])
	require.Less(t, time.Since(began), 30*time.Second)
	require.Equal(t, c.addrs[p]+" is the primary of the cluster", c.servers[f].ask("/rpc/report")["serv_standby"])
}

// An update without a primary is refused for now: old clients take the 503 for an error like any
// other, load balancers and ours try again.
func TestWithoutAPrimaryUpdatesAreToBeTriedAgain(t *testing.T) {
	c := &clusterOf{t: t, dir: t.TempDir(), servers: make([]*running, 1)}
	c.prepare(3)
	var memcached int
	c.servers[0] = start(t, func(cfg *server.Config) {
		c.configure(cfg, 0)
		_, err := fmt.Sscanf(freeport.Addr(t), "127.0.0.1:%d", &memcached)
		require.NoError(t, err)
		cfg.Plugins.MemcachePort = memcached
	})
	const text = "no primary of the cluster is known now"
	status, body := c.servers[0].dial().get("/rpc/set?key=a&value=1")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "DB: 9: system error: "+text)
	_, err := c.client(0).WaitReplicas(context.Background(), 1, 0, time.Minute)
	require.ErrorContains(t, err, text)
	err = c.client(0).DB("").Set(context.Background(), "a", []byte("1"), ktclient.Never)
	require.ErrorIs(t, err, ktclient.ErrReadOnly, "a client of several servers goes to the next one")
	require.Contains(t, exchange(t, dialHere(t), memcached, "set a 0 0 1\r\nx\r\nquit\r\n"), "SERVER_ERROR "+text)
	c.quiet(0)
	eventually(t, func() bool {
		return strings.Contains(c.trouble(0), "no primary has been appointed yet") &&
			strings.Contains(c.trouble(0), c.addrs[1]+" (connection refused)") && strings.Contains(c.trouble(0), c.addrs[2]+" (connection refused)")
	})
}

// prepare chooses addresses and writes a secret.
func (c *clusterOf) prepare(n int) {
	c.t.Helper()
	c.secret()
	for range n {
		c.addrs = append(c.addrs, freeport.Addr(c.t))
	}
	c.members = strings.Join(c.addrs, ",")
}

// A member with another name of the cluster would vote for nobody, and nobody would know.
func TestMembersOfAnotherClusterAreRefused(t *testing.T) {
	c := &clusterOf{t: t, dir: t.TempDir(), servers: make([]*running, 2)}
	c.prepare(2)
	c.start(0)
	c.servers[1] = start(t, func(cfg *server.Config) {
		c.configure(cfg, 1)
		cfg.Cluster.Name = "other"
	})
	for i, text := range []string{`that server is in the cluster "other", and the server that asks is in "test"`, `that server is in the cluster "test", and the server that asks is in "other"`} {
		eventually(t, func() bool { return strings.Contains(c.trouble(i), text) })
		eventually(t, func() bool {
			return strings.Count(strings.Join(c.servers[i].log.lines(), "\n"), "member: refused") == 1
		})
	}
}

// A typo in the list of the members is mended by starting the server again.
func TestATypoAmongTheMembersIsMended(t *testing.T) {
	c := &clusterOf{t: t, dir: t.TempDir(), servers: make([]*running, 3)}
	c.prepare(3)
	right := c.members
	c.members = strings.Replace(right, c.addrs[1], freeport.Addr(t), 1)
	c.start(2)
	c.members = right
	c.start(0)
	c.start(1)
	eventually(t, func() bool { return strings.Contains(c.trouble(2), "another list of members than here") })
	c.stop(2)
	c.start(2)
	c.primary()
	eventually(t, func() bool { return c.roles()[2] == "following" || c.roles()[2] == "leading" })
}

func TestAWitnessServesNoData(t *testing.T) {
	c := startElected(t, 3, 2)
	k := c.client(2)
	ctx := context.Background()
	const text = "witness of its cluster and keeps no data"
	_, err := k.DB("").Get(ctx, "a")
	require.ErrorContains(t, err, text)
	require.NotErrorIs(t, err, ktclient.ErrNoRecord)
	require.ErrorContains(t, k.DB("").Set(ctx, "a", []byte("1"), ktclient.Never), text)
	status, body := c.servers[2].dial().get("/a")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, text)
	b := c.servers[2].dial()
	_, err = b.Write([]byte(bulkGet))
	require.NoError(t, err)
	first, err := b.in.ReadByte()
	require.NoError(t, err)
	require.Equal(t, byte(0xbf), first)
	require.Equal(t, 200, c.servers[2].status("/rpc/report"))
}

// bulkGet is a get_bulk of the binary protocol for one record.
const bulkGet = "\xba\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01a"

// Orders that cannot be carried out as they are given are the operator's mistake.
func TestOrdersThatAreWrong(t *testing.T) {
	c := startElected(t, 3)
	for _, at := range []int{c.primary(), (c.primary() + 1) % 3} {
		for order, text := range map[string]string{
			"do=dance":                               "unknown to this version",
			"do=switchover&name=1.2.3.4:5":           "1.2.3.4:5 is no member; the members are ",
			"do=remove&name=1.2.3.4:5":               "1.2.3.4:5 is no member",
			"do=remove&name=" + c.addrs[c.primary()]: "switch over to another one first",
			"do=require&number=3":                    "from 0 to 2",
			"do=add&name=here":                       "is not HOST:PORT",
			"do=add&name=" + c.addrs[0]:              "is a member already",
			"do=add&name=" + freeport.Addr(t):        "the member cannot be reached: connection refused",
		} {
			status, body := c.servers[at].dial().get("/rpc/cluster_change?" + order)
			require.Equal(t, http.StatusBadRequest, status, fmt.Sprint(order, body))
			require.Contains(t, body, text)
		}
	}
}
