package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

// forwarded are the profiles that are replayed through a follower. Profiles about the server itself,
// its files, its log or its limits are not: a follower answers such requests about itself.
var forwarded = []string{"stash", "multi", "bin-multi", "script", "bin-script", "persist-stash"}

// opensMember is the case of a byte that no request of the original begins with. Servers of a cluster
// begin with it, and this one waits for the rest of what they say.
const opensMember = "unknown-magic-b5"

// longFamilies are left out for the sake of time: they are about encodings and searches, which are
// the same for all servers.
var longFamilies = []string{"http/02-rpc-encoding", "http/09-rpc-match"}

// about are words of requests that a follower answers about itself.
var about = []string{"/rpc/report", "/rpc/status", "/rpc/ulog", "/rpc/tune_replication", "/rpc/synchronize"}

// A client of the original that is connected to a follower with -forward gets the answers that it
// would get from the primary: the recorded conversations, through a follower.
func TestGoldensThroughAFollower(t *testing.T) {
	bin := ktproc.BuildPlain(t, "ktserver")
	profiles, listed := loadProfiles(t), loadDifferences(t)
	cases := map[string][]goldenCase{}
	for _, c := range loadCases(t) {
		cases[c.Server] = append(cases[c.Server], c)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("secret", 6)), 0o600))
	for _, name := range forwarded {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := profiles[name]
			primary := startProfile(t, bin, p.with("-sid", "1", "-ulog", "ulog", "-cluster-secret", secret))
			follower := startProfile(t, bin, p.with("-sid", "2", "-rts", "rts", "-mhost", "127.0.0.1", "-mport", strconv.Itoa(primary.Port),
				"-forward", "-cluster-secret", secret))
			r := &runner{addr: follower.Addr(), port: primary.Port, dbs: len(p.DBs), settle: caughtUp(t, primary, follower)}
			for _, c := range cases[name] {
				if c.asks(about) || c.Name == opensMember || slices.Contains(longFamilies, c.File) {
					continue
				}
				t.Run(c.File+"/"+c.Name, func(t *testing.T) {
					if row := listed[c.id()]; row.later {
						t.Skip(row.reason)
					}
					if bad := listed.verdict(c.id(), r.runInTime(&c)); bad != "" {
						t.Error(bad)
					}
				})
			}
			require.Empty(t, r.surplus())
			follower.Stop(t)
			primary.Stop(t)
		})
	}
}

// with returns the profile with further arguments.
func (p profile) with(args ...string) profile {
	p.Args = append(args, p.Args...)
	return p
}

// asks reports whether a case sends one of the words.
func (c *goldenCase) asks(words []string) bool {
	for _, s := range c.all() {
		for _, w := range words {
			if s.Send != nil && strings.Contains(string(*s.Send), w) {
				return true
			}
		}
	}
	return false
}

// caughtUp returns a function that waits until the follower has everything that the primary has: a
// client of both would have to wait too.
func caughtUp(t *testing.T, primary, follower *ktproc.Server) func() error {
	ask := func(s *ktproc.Server, path string) (string, error) {
		c, err := dial(s.Addr())
		if err != nil {
			return "", err
		}
		defer c.Close()
		c.send("GET /rpc/"+path+" HTTP/1.0\r\n\r\n", 0, 0)
		for deadline := time.Now().Add(answerLimit); c.fill(deadline) && !c.eof; {
		}
		return string(c.buf), nil
	}
	return func() error {
		list, err := ask(primary, "ulog_list")
		if err != nil {
			return err
		}
		var newest uint64
		for line := range strings.Lines(list) {
			if _, stamp, ok := strings.Cut(strings.TrimSpace(line), ".ulog\t"); ok {
				_, stamp, _ = strings.Cut(stamp, ":")
				n, _ := strconv.ParseUint(stamp, 10, 64)
				newest = max(newest, n)
			}
		}
		for deadline := time.Now().Add(answerLimit); time.Now().Before(deadline); {
			report, err := ask(follower, "report")
			if err != nil {
				return err
			}
			_, at, _ := strings.Cut(report, "repl_timestamp\t")
			at, _, _ = strings.Cut(at, "\n")
			if n, _ := strconv.ParseUint(at, 10, 64); n >= newest {
				return nil
			}
		}
		return fmt.Errorf("the follower does not catch up: %s", list)
	}
}
