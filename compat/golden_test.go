package compat

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

// tally counts the cases of all profiles.
type tally struct {
	mu            sync.Mutex
	cases, listed int
}

// TestGoldens replays every recorded conversation. One server process serves the cases of a
// profile, in their order.
func TestGoldens(t *testing.T) {
	bin := ktproc.BuildPlain(t, "ktserver")
	profiles, listed := loadProfiles(t), loadDifferences(t)
	byServer := map[string][]goldenCase{}
	for _, c := range loadCases(t) {
		byServer[c.Server] = append(byServer[c.Server], c)
	}
	var sum tally
	t.Run("profile", func(t *testing.T) {
		for _, name := range longestFirst(byServer) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				require.Contains(t, profiles, name)
				replayProfile(t, bin, profiles[name], byServer[name], listed, &sum)
			})
		}
	})
	outcome := "passed"
	if t.Failed() {
		outcome = "replayed, some failed"
	}
	t.Logf("%d %s, %d listed in DIFFERENCES.md", sum.cases-sum.listed, outcome, sum.listed)
}

// longestFirst returns the profiles in an order that keeps the whole short.
func longestFirst(cases map[string][]goldenCase) []string {
	var names []string
	for name := range cases {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return len(cases[names[i]]) > len(cases[names[j]]) })
	return names
}

func replayProfile(t *testing.T, bin string, p profile, cases []goldenCase, listed differences, sum *tally) {
	replayCases(t, startProfile(t, bin, p), len(p.DBs), cases, (*runner).runInTime, listed, sum)
}

// replayCases replays cases in their order with run, and stops the server.
func replayCases(t *testing.T, server *ktproc.Server, dbs int, cases []goldenCase,
	run func(*runner, *goldenCase) string, listed differences, sum *tally,
) {
	r := &runner{addr: server.Addr(), port: server.Port, dbs: dbs}
	for _, c := range cases {
		t.Run(c.File+"/"+c.Name, func(t *testing.T) {
			row, isListed := listed[c.id()]
			sum.add(isListed)
			if row.later {
				t.Skip(row.reason)
			}
			if bad := listed.verdict(c.id(), run(r, &c)); bad != "" {
				t.Error(bad)
			}
		})
	}
	require.Empty(t, r.surplus())
	server.Stop(t)
}

func (s *tally) add(listed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cases++
	if listed {
		s.listed++
	}
}

// startProfile prepares a working directory and starts the server in it.
func startProfile(t *testing.T, bin string, p profile) *ktproc.Server {
	t.Helper()
	o := ktproc.Options{Bin: bin, Dir: t.TempDir(), DBs: p.DBs}
	for name, f := range p.Files {
		writeProfileFile(t, filepath.Join(o.Dir, name), strings.HasSuffix(name, "/"), f)
	}
	if p.Prepare != nil {
		o.Args = p.Prepare.Args
		server := ktproc.Start(t, o)
		sendAll(t, server, p.Prepare.Requests)
		server.Stop(t)
	}
	o.Args = p.Args
	return ktproc.Start(t, o)
}

func writeProfileFile(t *testing.T, path string, dir bool, f profileFile) {
	t.Helper()
	if dir {
		require.NoError(t, os.MkdirAll(path, 0o755))
		return
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	mode := os.FileMode(0o644)
	if f.Exec {
		mode = 0o755
	}
	require.NoError(t, os.WriteFile(path, []byte(f.Text), mode))
}

func sendAll(t *testing.T, server *ktproc.Server, requests []latin1) {
	t.Helper()
	c, err := dial(server.Addr())
	require.NoError(t, err)
	defer c.Close()
	for _, request := range requests {
		require.NoError(t, c.request(string(request)))
	}
}

// TestCounters replays the one case about the counters of report. Its exact comparison includes the
// order in which a hash database lists its keys, which is undefined. Here this order may differ,
// and everything else is compared as recorded.
func TestCounters(t *testing.T) {
	p := loadProfiles(t)["counters"]
	server := startProfile(t, ktproc.BuildPlain(t, "ktserver"), p)
	r := &runner{addr: server.Addr(), port: server.Port, dbs: len(p.DBs)}
	for _, c := range loadCases(t) {
		if c.Server != "counters" {
			continue
		}
		for i := range c.Steps {
			s := &c.Steps[i]
			if s.Cmp == "" && s.Send != nil && strings.HasPrefix(string(*s.Send), "POST /rpc/match_") {
				s.Cmp = "set"
			}
		}
		require.Empty(t, r.run(&c))
	}
	require.Empty(t, r.surplus())
	server.Stop(t)
}
