package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/admin/api"
	"gotycoon/internal/freeport"
	"gotycoon/server"
)

// startShown runs members with admin listeners, and waits for a primary.
func startShown(t *testing.T, n int, witnesses ...int) *clusterOf {
	t.Helper()
	c := newElected(t, n, witnesses...)
	for range n {
		c.admins = append(c.admins, freeport.Addr(t))
	}
	for i := range n {
		c.start(i)
	}
	c.primary()
	return c
}

// shownCluster is what the console gets of a cluster.
type shownCluster struct {
	Off   string
	State api.ClusterState
	Task  *api.Task
}

func (c *clusterOf) shown(i int) (s shownCluster) {
	c.t.Helper()
	status, body := fetch(c.t, c.admins[i], "/api/cluster")
	require.Equal(c.t, http.StatusOK, status, body)
	require.NoError(c.t, json.Unmarshal([]byte(body), &s))
	return s
}

// banner is what every page of the console of a member says.
func (c *clusterOf) banner(i int) string {
	c.t.Helper()
	var about struct{ Alarms []api.Alarm }
	status, body := fetch(c.t, c.admins[i], "/api/server")
	require.Equal(c.t, http.StatusOK, status, body)
	require.NoError(c.t, json.Unmarshal([]byte(body), &about))
	texts := make([]string, len(about.Alarms))
	for i, a := range about.Alarms {
		texts[i] = a.Text
	}
	return strings.Join(texts, ". ")
}

// order sends an order as the console does, and returns what has become of it.
func (c *clusterOf) order(i int, body string) *api.Task {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, "http://"+c.admins[i]+"/api/cluster", strings.NewReader(body))
	require.NoError(c.t, err)
	request.Header.Set(api.Header, "1")
	response, err := http.DefaultClient.Do(request)
	require.NoError(c.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(c.t, err)
	require.Equal(c.t, http.StatusOK, response.StatusCode, string(text))
	var task *api.Task
	eventually(c.t, func() bool { task = c.shown(i).Task; return task != nil && !task.Running })
	return task
}

// switchTo has member i order that another one becomes the primary. The order says so when a third
// one had more and has become it: copies of the databases have positions of their own.
func (c *clusterOf) switchTo(i, to int) {
	c.t.Helper()
	eventually(c.t, func() bool {
		task := c.order(i, `{"do":"switchover","name":"`+c.addrs[to]+`"}`)
		return task.Error == "" && c.primary() == to
	})
}

// metric returns a metric of a member, of this cluster.
func (c *clusterOf) metric(i int, name, more string) float64 {
	c.t.Helper()
	_, body := fetch(c.t, c.admins[i], "/metrics")
	return sample(c.t, body, fmt.Sprintf(`gotycoon_cluster_%s{%sname="test"}`, name, more))
}

func (s *shownCluster) member(address string) api.ClusterMember {
	for _, m := range s.State.Members {
		if m.Address == address {
			return m
		}
	}
	return api.ClusterMember{}
}

func TestTheConsoleShowsTheCluster(t *testing.T) {
	c := startShown(t, 3)
	p := c.primary()
	f, gone := (p+1)%3, (p+2)%3
	require.Equal(t, 200, c.servers[p].status("/rpc/set?key=a&value=1"))
	for i := range 3 {
		eventually(t, func() bool { return c.banner(i) == "" })
		var s shownCluster
		eventually(t, func() bool { // a slow member may miss a single question of this one
			s = c.shown(i)
			return !slices.ContainsFunc(s.State.Members, func(m api.ClusterMember) bool { return !m.Answers })
		})
		require.Empty(t, s.Off)
		require.Equal(t, "test", s.State.Name)
		require.Equal(t, c.addrs[i], s.State.Self)
		require.Equal(t, c.addrs[p], s.State.Primary)
		require.Equal(t, 1, s.State.Required)
		require.Equal(t, 2, s.State.Followers)
		require.NotZero(t, s.State.Term)
		require.Len(t, s.State.Members, 3)
		for _, m := range s.State.Members {
			require.True(t, m.Answers)
			require.NotZero(t, m.ServerID)
			require.NotZero(t, m.Since)
			require.Equal(t, c.addrs[p], m.Follows)
		}
		require.Equal(t, i == p, s.State.Present != nil, "only the primary knows")
		require.EqualValues(t, 1, c.servers[i].ask("/rpc/report")["cluster_required"][0]-'0')
	}
	for _, i := range []int{f, gone} {
		c.holds(i, "a")
		eventually(t, func() bool { s := c.shown(p); m := s.member(c.addrs[i]); return m.Seconds != nil && *m.Seconds == 0 })
	}

	c.switchTo(f, gone)
	task := c.order(f, `{"do":"remove","name":"`+c.addrs[gone]+`"}`)
	require.Contains(t, task.Error, "switch over to another one first")
	c.switchTo(f, p)

	c.stop(gone)
	eventually(t, func() bool {
		return strings.Contains(c.banner(p), "1 of 3 members of the cluster do not answer: "+c.addrs[gone])
	})
	eventually(t, func() bool { return strings.Contains(c.banner(p), "with one less, updates are refused") })
	require.Equal(t, c.banner(p), c.servers[p].ask("/rpc/report")["cluster_trouble"])
	s := c.shown(p)
	require.False(t, s.member(c.addrs[gone]).Answers)
	require.Empty(t, c.order(p, `{"do":"require","number":0}`).Error)
	eventually(t, func() bool { return !strings.Contains(c.banner(p), "updates are refused") })
	require.Empty(t, c.order(p, `{"do":"remove","name":"`+c.addrs[gone]+`"}`).Error)
	require.Len(t, c.shown(f).State.Members, 2)
	eventually(t, func() bool { return c.banner(p) == "" })

	require.Empty(t, c.order(p, `{"do":"require","number":1}`).Error)
	c.stop(p)
	eventually(t, func() bool { return strings.Contains(c.banner(f), "no primary") })
	s = c.shown(f)
	require.Empty(t, s.State.Primary)
	require.Contains(t, s.State.Trouble, "no primary")
}

// A member that leads the vote and waits for followers is no primary: its followers show that too.
func TestAFollowerShowsThatThereIsNoPrimary(t *testing.T) {
	c := startShown(t, 3)
	p := c.primary()
	require.Equal(t, 200, c.servers[p].status("/rpc/set?key=a&value=1"))
	eventually(t, func() bool { return c.order(p, `{"do":"require","number":2}`).Error == "" })
	f := (p + 1) % 3
	c.stop(f) // or the primary, which hands over, would be the second follower until it has ended
	c.stop(p)
	c.start(f)
	var roles map[int]string
	eventually(t, func() bool {
		roles = c.roles()
		return roles[(p+1)%3] == "opening" && roles[(p+2)%3] == "following" || roles[(p+1)%3] == "following" && roles[(p+2)%3] == "opening"
	})
	for i := range roles {
		if i == p {
			continue
		}
		eventually(t, func() bool {
			text := c.banner(i) // before the vote it says that nobody leads it
			return strings.Contains(text, "no primary") && strings.Contains(text, "waits until 2 followers have the first update of term")
		})
	}
	c.start(p)
	c.primary()
	for i := range 3 {
		eventually(t, func() bool { return c.banner(i) == "" })
	}
}

func TestMetricsOfTheCluster(t *testing.T) {
	c := startShown(t, 3, 2)
	p := c.primary()
	f := 1 - p
	eventually(t, func() bool {
		_, body := fetch(t, c.admins[p], "/metrics")
		return strings.Contains(body, "gotycoon_cluster_members_present")
	})
	_, body := fetch(t, c.admins[p], "/metrics")
	for _, d := range server.Metrics() {
		if strings.HasPrefix(d.Name, "gotycoon_cluster_") {
			require.Contains(t, body, fmt.Sprintf("# TYPE %s %s\n", d.Name, d.Kind))
		}
	}
	checkWithPromtool(t, body)
	require.Equal(t, 1.0, c.metric(p, "leading", ""))
	require.Equal(t, 0.0, c.metric(f, "leading", ""))
	for _, i := range []int{p, f, 2} {
		require.NotZero(t, c.metric(i, "term", ""))
		require.Equal(t, 1.0, c.metric(i, "required", ""))
		require.Equal(t, 3.0, c.metric(i, "members", ""))
		require.Equal(t, 1.0, c.metric(i, "followers", ""))
		require.NotZero(t, c.metric(i, "primary_change_timestamp_seconds", ""))
		require.Zero(t, c.metric(i, "aside_logs", ""))
	}
	_, body = fetch(t, c.admins[f], "/metrics")
	require.NotContains(t, body, "member_present")
	require.Empty(t, c.banner(2), "a witness without trouble")

	before := c.metric(2, "primary_changes_total", "")
	c.switchTo(f, f)
	eventually(t, func() bool { return c.metric(2, "primary_changes_total", "") > before })
	c.stop(p)
	missing := `member="` + c.addrs[p] + `",`
	eventually(t, func() bool {
		_, body := fetch(t, c.admins[f], "/metrics")
		return strings.Contains(body, "member_present{"+missing) && c.metric(f, "member_present", missing) == 0
	})
	require.Equal(t, 2.0, c.metric(f, "members_present", ""))
}

// What was put aside is shown until somebody removes it, also by the next process.
func TestWhatWasPutAsideStaysShown(t *testing.T) {
	c := startShown(t, 3)
	f := (c.primary() + 1) % 3
	aside := filepath.Join(c.dir, fmt.Sprint(f), "cluster", "aside-term-7-20261123-120000.000000")
	require.NoError(t, os.MkdirAll(aside, 0o755))
	require.Equal(t, 1.0, c.metric(f, "aside_logs", ""))
	require.Equal(t, "1", c.servers[f].ask("/rpc/report")["cluster_aside_logs"])
	s := c.shown(c.primary())
	require.Equal(t, []api.ClusterAside{{Dir: aside}}, s.member(c.addrs[f]).Asides)
	require.NoError(t, os.Remove(aside))
	require.Zero(t, c.metric(f, "aside_logs", ""))
	s = c.shown(c.primary())
	require.Empty(t, s.member(c.addrs[f]).Asides)
}

func TestAServerThatIsNoMemberYetSaysSo(t *testing.T) {
	c := newElected(t, 1)
	c.admins = []string{freeport.Addr(t)}
	c.servers[0] = start(t, func(cfg *server.Config) {
		c.configure(cfg, 0)
		cfg.Cluster.Members, cfg.Cluster.Join, cfg.Cluster.Advertise = "", true, c.addrs[0]
	})
	ready(t, c.admins[0])
	require.Contains(t, c.banner(0), "ktremotemgr cluster add "+c.addrs[0])
	s := c.shown(0)
	require.Empty(t, s.State.Members)
	require.Empty(t, s.State.Primary)
	require.Contains(t, c.order(0, `{"do":"require","number":0}`).Error, "no member leads")
	require.Zero(t, c.metric(0, "members", ""))
}

// A server in no cluster says nothing of one.
func TestWithoutAClusterNothingIsShown(t *testing.T) {
	s, addr := startAdmin(t, nil)
	ready(t, addr)
	eventually(t, func() bool { status, _ := fetch(t, addr, "/api/cluster"); return status == http.StatusOK })
	_, body := fetch(t, addr, "/api/cluster")
	require.Contains(t, body, "in no cluster")
	_, body = fetch(t, addr, "/api/server")
	require.NotContains(t, body, "cluster")
	_, body = fetch(t, addr, "/api/facts")
	require.NotContains(t, body, `"Cluster"`)
	_, body = fetch(t, addr, "/metrics")
	require.NotContains(t, body, "gotycoon_cluster")
	for name := range s.ask("/rpc/report") {
		require.NotContains(t, name, "cluster")
	}
}
