package upgrade

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

// patience is how long a test waits for something that should happen soon.
const patience = 60 * time.Second

// versions are the server programs.
type versions struct{ old, present string }

func programs(t *testing.T) (v versions) {
	t.Helper()
	v.present = ktproc.Build(t, "ktserver")
	v.old = v.present
	if dir, ok := os.LookupEnv("GOTYCOON_OLD"); ok {
		v.old = filepath.Join(dir, "ktserver")
	}
	return v
}

func TestVersions(t *testing.T) {
	v := programs(t)
	for name, test := range map[string]func(*testing.T, versions){
		"a cluster goes to a new version and back":            clusterAndBack,
		"a master and its slaves become a cluster":            becomeCluster,
		"a master and its slave go to a new version and back": pairAndBack,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, v)
		})
	}
}

// knows reports whether a program has an option.
func knows(t *testing.T, program, option string) bool {
	t.Helper()
	text, err := exec.Command(program, "man").Output()
	require.NoError(t, err, program)
	return strings.Contains(strings.ReplaceAll(string(text), `\-`, "-"), option)
}

// node is a server that keeps its place when it goes over to another program.
type node struct {
	t    *testing.T
	dir  string
	port int
	sid  int
	proc *ktproc.Server
	c    *client.Client
}

func newNode(t *testing.T, dir string, sid int) *node {
	n := &node{t: t, dir: dir, port: freeport.Take(t), sid: sid}
	n.c = client.New(n.addr(), client.Options{Timeout: 10 * time.Second})
	t.Cleanup(func() {
		n.c.Close()
		if t.Failed() && n.proc != nil {
			t.Logf("%s has said:\n%s", n.addr(), n.proc.Output())
		}
	})
	return n
}

func (n *node) addr() string { return "127.0.0.1:" + strconv.Itoa(n.port) }

// start starts a program and waits until it listens.
func (n *node) start(program string, args ...string) {
	n.t.Helper()
	args = append([]string{"-host", "127.0.0.1", "-sid", strconv.Itoa(n.sid), "-ulog", fmt.Sprint("ulog", n.sid)}, args...)
	n.proc = ktproc.Launch(n.t, ktproc.Options{Bin: program, Dir: n.dir, Args: args, DBs: []string{fmt.Sprint(n.sid, ".kct")}}, n.port)
	require.True(n.t, n.proc.AwaitListening(), "%s", n.proc.Output())
}

func (n *node) stop() {
	n.t.Helper()
	n.proc.Stop(n.t)
}

// contents are all records.
func (n *node) contents() map[string]string {
	n.t.Helper()
	has := map[string]string{}
	for r, err := range n.c.DB("").All(n.t.Context()) {
		require.NoError(n.t, err)
		has[r.Key] = string(r.Value)
	}
	return has
}

// caughtUp waits until a server that follows has an update that another one makes now.
func (n *node) caughtUp(master *node) {
	n.t.Helper()
	key := fmt.Sprint("mark-", time.Now().UnixNano())
	require.NoError(n.t, master.c.DB("").Set(n.t.Context(), key, []byte("1"), client.Never))
	eventually(n.t, func() bool {
		_, err := n.c.DB("").Get(n.t.Context(), key)
		return err == nil
	}, "%s does not get what %s has", n.addr(), master.addr())
}

func eventually(t *testing.T, condition func() bool, text string, args ...any) {
	t.Helper()
	require.Eventually(t, condition, patience, 10*time.Millisecond, append([]any{text}, args...)...)
}
