package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/internal/freeport"
	"gotycoon/internal/needs"
	"gotycoon/server"
)

// startCluster runs three members that elect their primary, and returns the number of the primary.
func startCluster(t *testing.T) (all []*running, primary int) {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("secret", 10)), 0o600))
	var ports []int
	var members []string
	for range 3 {
		ports = append(ports, freeport.Take(t))
		members = append(members, fmt.Sprintf("127.0.0.1:%d", ports[len(ports)-1]))
	}
	for i, port := range ports {
		all = append(all, start(t, func(c *server.Config) {
			c.Port, c.ServerID, c.Databases = port, i+1, []string{filepath.Join(dir, fmt.Sprint(i, ".kct"))}
			c.Snapshots.Dir, c.Services = "", server.ServicesConfig{}
			c.UpdateLog = filepath.Join(dir, fmt.Sprint("ulog", i))
			c.Cluster = server.ClusterConfig{Name: "shop", Members: strings.Join(members, ","), Timeout: 2 * time.Second}
			c.Members.Secret = secret
		}))
	}
	ask := client.New(all[0].at(ports[0]), client.Options{})
	defer ask.Close()
	steady := func() bool {
		rows, err := ask.ClusterStatus(t.Context())
		following, leads := 0, false
		for i := range ports {
			row := string(rows[members[i]])
			if strings.HasPrefix(row, "role=leading ") {
				leads, primary = true, i
			}
			if strings.HasPrefix(row, "role=following ") && strings.HasSuffix(row, " lag=0.000") {
				following++
			}
		}
		return err == nil && leads && following == 2
	}
	require.Eventually(t, steady, patience, 10*time.Millisecond)
	// Behind an update that all have, none of them has more than the others.
	to := client.New(members[primary], client.Options{})
	defer to.Close()
	require.NoError(t, to.DB("0").Set(t.Context(), "japan", []byte("tokyo"), client.Never))
	for _, at := range members {
		of := client.New(at, client.Options{})
		defer of.Close()
		require.Eventually(t, func() bool {
			_, err := of.DB("0").Get(t.Context(), "japan")
			return err == nil
		}, patience, 10*time.Millisecond)
	}
	return all, primary
}

// member is what the page shows of a member.
func member(s *running) string {
	return fmt.Sprintf(`[...document.querySelectorAll("main tbody tr")].find(r => r.innerText.includes(%q))`, s.at(s.cfg.Port))
}

// shows waits until the row of a member has these words.
func shows(b *browser, s *running, words string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`%s?.innerText.includes(%q)`, member(s), words))
}

// pressOf clicks on a button of a member.
func pressOf(b *browser, s *running, label string) {
	b.t.Helper()
	selector := fmt.Sprintf(`button[aria-label=%q]`, fmt.Sprintf(label, s.at(s.cfg.Port)))
	b.until(fmt.Sprintf(`document.querySelector(%q)?.disabled === false`, selector))
	eval[bool](b, fmt.Sprintf(`(document.querySelector(%q).click(), true)`, selector))
}

// TestCluster looks at a cluster, switches over, loses a member, and takes it out.
func TestCluster(t *testing.T) {
	needs.Chromium(t)
	all, p := startCluster(t)
	next, gone := all[(p+1)%3], all[(p+2)%3]
	b := openBrowser(t, all[p].console)
	b.prefers("light")
	b.section("overview", "Overview")
	b.press("nav", "Cluster c")
	b.sees("h1", "Cluster")
	b.sees("main", "1 follower of 2")
	shows(b, all[p], "this server")
	shows(b, all[p], "primary")
	shows(b, next, "follows")
	shows(b, gone, "up to date")
	b.until(`!document.querySelector("#banner").checkVisibility()`)
	b.unclipped("cluster")
	b.shot("cluster-light")
	b.prefers("dark")
	b.shot("cluster-dark")
	b.prefers("light")
	b.size(360, 740, 2)
	b.unclipped("cluster on a phone")
	b.shot("cluster-phone")
	b.size(1360, 900, 1)

	aside := filepath.Join(next.cfg.UpdateLog+".cluster", "aside-term-1-20261123-120000.000000")
	require.NoError(t, os.Mkdir(aside, 0o755))
	shows(b, next, filepath.Base(aside))
	b.sees("main", "was never answered to a client")
	b.shot("cluster-aside")
	b.unclipped("aside")
	require.NoError(t, os.Remove(aside))
	b.until(`!document.querySelector("main").innerText.includes("aside-term")`)

	pressOf(b, next, "Make %s the primary")
	b.sees("dialog", "Switch over?")
	b.shot("cluster-dialog")
	require.Equal(t, "Cancel", eval[string](b, "document.activeElement.innerText"), "the harmless button has the focus")
	b.press("dialog", "Cancel")
	b.until(`!document.querySelector("dialog")`)
	shows(b, all[p], "primary")
	pressOf(b, next, "Make %s the primary")
	b.press("dialog", "Switch over")
	b.sees("#notices", "The order is carried out.")
	shows(b, next, "primary")
	shows(b, all[p], "follows")
	b.fine()

	require.Zero(t, gone.stop())
	shows(b, gone, "no answer")
	shows(b, gone, "it does not answer this server")
	b.press("main", "Change the number of followers")
	b.write("dialog input[type=number]", "7")
	b.press("dialog", "Change")
	b.sees("dialog", "Give a number from 0 to 2.")
	b.write("dialog input[type=number]", "0")
	b.press("dialog", "Change")
	b.sees("main", "no follower: the primary alone has it")
	pressOf(b, gone, "Remove %s from the cluster")
	b.press("dialog", "Remove member")
	b.until("!" + member(gone))
	b.until(`document.querySelectorAll("main tbody tr").length === 2`)
	b.fine()

	require.Zero(t, next.stop())
	b.sees("#banner", "no primary")
	b.until(`!document.querySelector("#cluster-trouble").checkVisibility()`) // once is enough
	shows(b, all[p], "waits")
	b.shot("cluster-without-primary")
	b.fine()
}

// TestClusterOfAnotherServer: a server in no cluster does not offer the section, and says why when
// somebody comes by its address.
func TestClusterOfAnotherServer(t *testing.T) {
	needs.Chromium(t)
	s := start(t, nil)
	b := openBrowser(t, s.console)
	b.section("overview", "Overview")
	b.sees("#server-state", "ready")
	require.False(t, eval[bool](b, `document.querySelector("nav").innerText.includes("Cluster")`))
	b.types("c")
	b.types("0")
	b.sees("h1", "Server")
	b.section("cluster", "Cluster")
	b.sees("main", "in no cluster")
	b.fine()

	b.mu.Lock()
	b.gone = true
	b.mu.Unlock()
	require.Zero(t, s.stop())
	b.sees("#banner", "No answer from the server. Trying again.")
	b.types("3")
	b.sees("main", "The server does not answer. This page goes on when it does.")
	s.begin()
	b.sees("main", "Updates flow along the arrows.")
	b.sees("main", "Details")
}
