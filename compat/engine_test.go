package compat

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/pg/pgtest"
)

// postgres is the server of this package.
var postgres pgtest.Shared

func TestMain(m *testing.M) { os.Exit(postgres.Main(m)) }

// maxInEngine is the largest share of the conversations that may be listed for databases in an
// engine, in percent.
const maxInEngine = 5

// atOnce is how many servers are asked at a time.
const atOnce = 6

// waiting are the files whose cases mostly wait. Each has a server of its own, so that they wait at
// the same time.
var waiting = []string{"http/08-rpc-xt", "http/11-rpc-signal", "http/26-idle-gc", "http/27-wait-default"}

// wholly reports whether everything is replayed, and not only what is not in repeated.
func wholly() bool { return os.Getenv("GOTYCOON_BIG") != "" }

// repeated are profiles with the cases of other kinds of databases, which in an engine are the same,
// and files about connections, threads and the words of a protocol.
var repeated = []string{
	"cache", "dirhash", "protohash", "dirtree", "filetree", "persist-tree", "http/23-threads-timeouts", "memcached/basic", "memcached/flags",
}

// newEngine sets up an engine of its own in the PostgreSQL of the package's tests, with databases
// that have the names of those given, without paths and parameters but for ktopts=p. It returns the engine's URL.
func newEngine(t *testing.T, dbs []string) string {
	t.Helper()
	url := postgres.URL(t)
	setup := pg.Setup{SID: 1, Log: true}
	for _, db := range dbs {
		path, params, _ := strings.Cut(db, "#")
		name := path[strings.LastIndexByte(path, '/')+1:]
		for slices.Contains(setup.Databases, name) { // an engine refuses two of a name
			name += "'"
		}
		if params == "ktopts=p" {
			name += "#" + params
		}
		setup.Databases = append(setup.Databases, name)
	}
	made, err := pg.Init(context.Background(), url, setup)
	require.NoError(t, err)
	require.True(t, made)
	return url
}

// inEngine returns the profile with its databases in an engine, and without the options of an
// update log, which such a server refuses.
func (p profile) inEngine(t *testing.T) profile {
	t.Helper()
	own := []string{"-pldb", newEngine(t, p.DBs)}
	args := slices.Clone(own)
	for i := 0; i < len(p.Args); i++ {
		if slices.Contains([]string{"-ulog", "-sid", "-rts"}, p.Args[i]) {
			i++ // and its value
			continue
		}
		args = append(args, p.Args[i])
	}
	p.Args, p.DBs = args, nil
	if p.Prepare != nil {
		first := *p.Prepare
		first.Args = own
		p.Prepare = &first
	}
	return p
}

// TestConversationsInAnEngine replays the recorded conversations with servers whose databases are
// in a PostgreSQL, with GOTYCOON_BIG all of them. Cases that differ there and nowhere else have a
// section of their own in DIFFERENCES.md, and are at most a twentieth.
func TestConversationsInAnEngine(t *testing.T) {
	t.Parallel()
	_ = postgres.URL(t) // or nothing is built
	e := &inEngine{bin: ktproc.BuildPlain(t, "ktserver"), listed: loadDifferences(t), places: make(chan struct{}, atOnce)}
	own := loadEngineDifferences(t)
	for id, row := range own {
		e.listed[id] = row
	}
	e.goldens(t)
	e.memcached(t)
	e.lua(t)
	e.atOnce(t, "transactions", e.transactions)
	e.work.Wait()
	listed, later := len(luaTransactions(t)), 0
	for _, row := range own {
		if row.later {
			later++
		} else {
			listed++
		}
	}
	all := e.recorded(t)
	t.Logf("of %d conversations %d differ in an engine, and %d need what is not there yet", all, listed, later)
	require.LessOrEqual(t, 100*listed, maxInEngine*all, "too many conversations are listed")
}

// inEngine is what the replays have in common.
type inEngine struct {
	bin    string
	listed differences
	sum    tally
	work   sync.WaitGroup
	places chan struct{}
}

// atOnce runs a test beside others: more at a time than there are processors, as they mostly wait.
func (e *inEngine) atOnce(t *testing.T, name string, run func(t *testing.T)) {
	e.work.Go(func() {
		e.places <- struct{}{}
		defer func() { <-e.places }()
		t.Run(name, run)
	})
}

// recorded is how many conversations there are, without those of databases that keep nothing.
func (e *inEngine) recorded(t *testing.T) int {
	n := len(loadCases(t)) + len(memcFiles(t)) + len(luaTransactions(t))
	for _, groups := range luaGroups(t) {
		for _, group := range groups {
			n += len(group)
		}
	}
	return n
}

func (e *inEngine) goldens(t *testing.T) {
	t.Helper()
	profiles := loadProfiles(t)
	shares := map[string][]goldenCase{}
	for _, c := range loadCases(t) {
		share := c.Server
		switch {
		case !wholly() && (slices.Contains(repeated, c.File) || slices.Contains(repeated, c.Server)):
			continue
		case slices.Contains(waiting, c.File):
			share += " " + c.File
		}
		shares[share] = append(shares[share], c)
	}
	for _, share := range longestFirst(shares) {
		e.atOnce(t, share, func(t *testing.T) {
			p := profiles[shares[share][0].Server]
			replayCases(t, startProfile(t, e.bin, p.inEngine(t)), len(p.DBs), shares[share], betweenSweeps, e.listed, &e.sum)
		})
	}
}

// betweenSweeps replays a case. An engine's server removes once a second what has expired, at any
// moment, and so perhaps in the middle of a case that looks for such records: this case is replayed
// again.
func betweenSweeps(r *runner, c *goldenCase) (difference string) {
	if !c.onTheSecond() {
		return r.runInTime(c)
	}
	for range attempts {
		if difference = r.run(c); difference == "" {
			break
		}
	}
	return difference
}

func (e *inEngine) memcached(t *testing.T) {
	t.Helper()
	for id, c := range memcFiles(t) {
		if !wholly() && slices.Contains(repeated, id.file) {
			continue
		}
		e.atOnce(t, id.file+"/"+c.Name, func(t *testing.T) {
			c.Options.PlDB, c.Options.DBs = newEngine(t, c.Options.DBs), nil
			r, refused := startMemcached(t, e.bin, &c)
			row, differs := e.listed[id]
			require.Empty(t, refused)
			require.False(t, row.later, "it is listed as what is not there yet")
			if differs {
				r.limit = surplusLimit * 20 // what comes is another answer
			}
			if bad := e.listed.verdict(id, r.run(c.Exchange)); bad != "" {
				t.Error(bad)
			}
		})
	}
}

// memcFiles returns the conversations with the memcached plug-in, without those with a database
// that keeps nothing.
func memcFiles(t *testing.T) map[caseID]memcCase {
	t.Helper()
	names, err := filepath.Glob("testdata/memcached/*.jsonl")
	require.NoError(t, err)
	all := map[caseID]memcCase{}
	for _, name := range names {
		file := "memcached/" + strings.TrimSuffix(filepath.Base(name), ".jsonl")
		for _, c := range readLines[memcCase](t, name) {
			if c.Options.PlDB == "" {
				all[caseID{file, c.Name}] = c
			}
		}
	}
	return all
}

func (e *inEngine) lua(t *testing.T) {
	t.Helper()
	for file, groups := range luaGroups(t) {
		for _, group := range groups {
			e.atOnce(t, group[0].group(), func(t *testing.T) {
				replayLua(t, e.startLua(t, group[0].Script, group[0].Options), "lua/"+file, group, e.listed)
			})
		}
	}
}

func (e *inEngine) startLua(t *testing.T, script string, options []string) *luaServer {
	t.Helper()
	args, dbs := cutDatabases(options)
	return startLua(t, e.bin, script, append(args, "-pldb", newEngine(t, dbs)))
}

// transactions begins one of the transactions over several calls, which is refused. The others
// differ from it in the kind of database alone.
func (e *inEngine) transactions(t *testing.T) {
	p := e.startLua(t, "tx.lua", luaTransactions(t)[0].Options)
	status, out := p.play(t, map[string]latin1{"name": "begin"})
	require.Equal(t, 500, status)
	require.Equal(t, map[string]latin1{"ERROR": "the scripting procedure failed"}, out)
	require.Contains(t, p.Output(), "a transaction in a shared engine ends with the call that began it")
	p.Stop(t)
}
