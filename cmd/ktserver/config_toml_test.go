package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
	"gotycoon/internal/klog"
	"gotycoon/server"
)

func TestTOMLWithAndWithoutTables(t *testing.T) {
	flat := `databases = ["a.kct", 'b.kch#bnum=1m'] # a comment
port = 2_000
tout = 1.5
ulog = "my log"
ulim = "2k"
sid = 3
mhost = "m"
rts = "r"
riv = 0.5
oas = true
li = false
log-format = "json"
log-level = "error"
counter-port = 7
counter-max-connections = 9
lock-strict = true
`
	tables := `databases = [
	"a.kct",
	'b.kch#bnum=1m',
]
port = 0x7d0
tout = 1.5

[update-log]
ulog = "my log"
ulim = "2k"
sid = 3

[replication]
mhost = "m"
rts = "r"
riv = 0.5

[files]
oas = true

[logging]
log-format = "json"
log_level = "error"

[counter]
port = 7
max_connections = 9

[lock]
lock-strict = true
`
	a, err := withFile(t, flat)
	require.NoError(t, err)
	require.Equal(t, 2000, a.Port)
	require.Equal(t, int64(2048), a.UpdateLogLimit)
	require.Equal(t, slog.LevelError, a.LogLevel)
	require.Equal(t, klog.JSON, a.LogFormat)
	require.Equal(t, 7, a.Services.CounterPort)
	require.Equal(t, []string{"a.kct", "b.kch#bnum=1m"}, a.Databases)
	b, err := withFile(t, tables)
	require.NoError(t, err)
	require.Equal(t, a.Config, b.Config)
	c, err := withFile(t, strings.Replace(flat, "counter-port = 7\ncounter-max-connections = 9\n", "counter = { port = 7, max_connections = 9, enable = true }\n", 1))
	require.NoError(t, err)
	require.Equal(t, a.Config, c.Config)
}

func TestErrorsOfTOMLNameTheLineAndTheWord(t *testing.T) {
	for text, want := range map[string]string{
		"port = 1\nport = 2\n":                       "server.conf:2: port: is given in line 1 already",
		"databases = [\"a\"]\nport = 1\nport = 2\n":  "server.conf:3: key port is already defined",
		"[counter]\nport = 1\n[counter]\nport = 2\n": "server.conf:3: table counter already exists",
		"counter-port = 1\n[counter]\nport = 2\n":    "server.conf:3: counter.port: is given in line 1 already",
		"prot = 1\n":                                `server.conf:1: there is no option "prot" (is it "port"?)`,
		"[replicaton]\nmhost = \"x\"\n":             `server.conf:2: there is no option "replicaton.mhost" (is it "mhost", in the table "replication"?)`,
		"[counter]\nbukets = 1\n":                   `server.conf:2: there is no option "counter.bukets" (is it "counter-buckets", in the table "counter"?)`,
		"port = true\n":                             "server.conf:1: port: is a number, not true or false",
		"host = 5\n":                                "server.conf:1: host: is a text, not a number",
		"oas = \"yes\"\n":                           "server.conf:1: oas: is true or false, not a text",
		"ulim = \"many\"\n":                         "server.conf:1: ulim: must be a size",
		"host = [\"a\"]\n":                          "server.conf:1: host: is a text, not a list",
		"databases = [1]\n":                         "server.conf:1: databases: is a list of texts",
		"databases = 1\n":                           "server.conf:1: databases: is a list of texts",
		"asi = 2026-01-01\n":                        "server.conf:1: asi: no option has a value of this type",
		"log-level = \"loud\"\n":                    "server.conf:1: log-level: must be one of debug, info, system, error, none",
		"databases = [\"a\",\n":                     "server.conf:1: array is incomplete",
		"host = \"a\"  # where\nulog = /var/ulog\n": "server.conf:2: unexpected character",
		"port = 1 # why\nulog = /var/ulog\n":        "(read as lines NAME = VALUE, because it is not TOML: ",
		"[port]\nx = 1\n":                           `there is no option "port.x"`,
		"config = \"x\"\n":                          `there is no option "config"`,
		"\"databases\" = []\n[a.b]\nc = 1\n":        `server.conf:3: there is no option "a.b.c"`,
	} {
		_, err := withFile(t, text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestCommandLineBeforeEnvironmentBeforeFileBeforeDefault(t *testing.T) {
	t.Setenv("GOTYCOON_PORT", "3000")
	t.Setenv("GOTYCOON_TH", "5")
	t.Setenv("GOTYCOON_LOG_LEVEL", "system")
	t.Setenv("GOTYCOON_OAS", "true")
	t.Setenv("GOTYCOON_DATABASES", "b.kct c.kct")
	t.Setenv("GOTYCOON_SOMEBODY_ELSES", "x")
	o, err := withFile(t, "databases = [\"a.kct\"]\nport = 2000\nth = 4\nmport = 9\nle = true\n", "-port", "4000")
	require.NoError(t, err)
	require.Equal(t, 4000, o.Port)
	require.Equal(t, 5, o.Threads)
	require.Equal(t, 9, o.MasterPort)
	require.True(t, o.SyncEach)
	require.Equal(t, klog.LevelSystem, o.LogLevel)
	require.Equal(t, []string{"b.kct", "c.kct"}, o.Databases)
	sources := map[string]string{}
	for _, s := range o.settings() {
		sources[s.Name] = s.Value + " " + s.Source
	}
	require.Equal(t, "4000 command line", sources["port"])
	require.Equal(t, "5 environment", sources["th"])
	require.Equal(t, "9 "+o.config+":4", sources["mport"])
	require.Equal(t, "30 default", sources["tout"])
	require.Equal(t, "system environment", sources["log-level"])
	require.Equal(t, "b.kct c.kct environment", sources["databases"])
}

func TestEnvironmentNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.toml")
	require.NoError(t, os.WriteFile(path, []byte("port = 2222\n"), 0o600))
	t.Setenv("GOTYCOON_CONFIG", path)
	o, err := parse(nil)
	require.NoError(t, err)
	require.Equal(t, 2222, o.Port)
}

func TestWrongVariables(t *testing.T) {
	for name, want := range map[string]string{
		"GOTYCOON_PORT":     "GOTYCOON_PORT in the environment: must be a number",
		"GOTYCOON_PROT":     "GOTYCOON_PROT in the environment: there is no such option; GOTYCOON_PORT is one",
		"GOTYCOON_LOCK_TTL": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "x")
			_, err := parse(nil)
			if want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, want)
		})
	}
}

func TestShowCanBeReadAgain(t *testing.T) {
	text := "databases = [\"a \\\"b\\\".kct\", \"c\\\\\"]\nport = 2000\nulim = \"2k\"\nhost = \"h\\u0001\"\n[logging]\nls = true\n[snapshots]\nbgs = \".\"\n"
	o, err := withFile(t, text, "-counter-port", "5")
	require.NoError(t, err)
	var out bytes.Buffer
	o.show(&out)
	require.Contains(t, out.String(), "\nport = 2000 # "+o.config+":2\n")
	require.Contains(t, out.String(), "\n[counter]\nport = 5 # command line\n")
	require.Contains(t, out.String(), "\nlog-level = \"system\" # "+o.config+":6\n")
	require.Contains(t, out.String(), "\ntout = 30 # default\n")
	again, err := withFile(t, out.String())
	require.NoError(t, err, out.String())
	require.Equal(t, o.Databases, again.Databases)
	require.Equal(t, o.Host, again.Host)
	for i, s := range o.settings() {
		require.Equal(t, s.Value, again.settings()[i].Value, s.Name)
	}
}

// What the help tells is the default: setting it changes nothing, but for fields in which 0 stands
// for it.
func TestTheDefaultsThatAreToldAreThose(t *testing.T) {
	standsForIt := []string{"ulim", "uasi", "counter-buckets", "counter-stats-interval", "lock-max-keys", "lock-max-waiters", "services",
		"bgsc", "memcache-opts", "memcache-qtout"}
	for _, r := range newOptions().shown() {
		o, name, value := newOptions(), r.name, r.usual()
		if value == "" {
			continue
		}
		require.NoError(t, o.flags.Set(name, value), name)
		if !slices.Contains(standsForIt, name) {
			require.Equal(t, server.DefaultConfig(), o.Config, name)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	for name, want := range map[string]bool{"admin-password": true, "token": true, "token-file": false, "port": false, "access": false} {
		require.Equal(t, want, (&option{name: name}).secret(), name)
	}
}

func TestEveryExampleIsGood(t *testing.T) {
	examples, err := filepath.Glob("../../packaging/examples/*.toml")
	require.NoError(t, err)
	for _, path := range examples {
		_, err := parse([]string{"-config", path})
		require.NoError(t, err, path)
	}
}

// The servers of the example for containers are given options that there are, and that go together.
func TestTheComposeExampleIsGood(t *testing.T) {
	text, err := os.ReadFile("../../packaging/examples/compose.yaml")
	require.NoError(t, err)
	var shared []string
	for _, m := range regexp.MustCompile(`(?m)^    GOTYCOON_([A-Z_]+): "?([^"\n]+)"?$`).FindAllStringSubmatch(string(text), -1) {
		option := "-" + strings.ToLower(strings.ReplaceAll(m[1], "_", "-"))
		if shared = append(shared, option); m[2] != "true" {
			shared = append(shared, m[2])
		}
	}
	require.Len(t, shared, 15)
	commands := regexp.MustCompile(`(?m)^    command: \[(.*)\]$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, commands, 3)
	for _, m := range commands {
		args := slices.Clone(shared)
		for arg := range strings.SplitSeq(m[1], ", ") {
			args = append(args, strings.Trim(arg, `"`))
		}
		cfg, err := parse(args)
		require.NoError(t, err, m[1])
		require.Contains(t, cfg.Cluster.Members, cfg.Cluster.Advertise)
	}
}

// So are those of the example with a follower and Prometheus, whose files are there.
func TestTheMonitoredComposeExampleIsGood(t *testing.T) {
	text, err := os.ReadFile("../../packaging/examples/compose-monitored.yaml")
	require.NoError(t, err)
	commands := regexp.MustCompile(`(?m)^    command: \[(.*)\]$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, commands, 2)
	for i, m := range commands {
		cfg, err := parse(strings.Split(strings.ReplaceAll(m[1], `"`, ""), ", "))
		require.NoError(t, err, m[1])
		require.Equal(t, i == 1, cfg.Replication.ReadOnly, "the second one follows")
		require.Equal(t, "0.0.0.0:1990", cfg.Admin.Addr, "where prometheus.yaml asks")
	}
	mounts := regexp.MustCompile(`(?m)^      - \./(\S+?):/`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, mounts, 3)
	for _, m := range mounts {
		require.FileExists(t, "../../"+m[1])
	}
}

// So are the servers of the example for Kubernetes.
func TestTheKubernetesExampleIsGood(t *testing.T) {
	text, err := os.ReadFile("../../packaging/kubernetes/cluster.yaml")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(text), "          args:\n")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "          ports:")
	list = strings.NewReplacer("            - ", "", "$(INDEX)", "2", "$(POD)", "kt-2").Replace(list)
	cfg, err := parse(strings.Fields(list))
	require.NoError(t, err)
	require.Contains(t, cfg.Cluster.Members, cfg.Cluster.Advertise)
	require.EqualValues(t, 2, cfg.ServerID)
	require.Equal(t, []string{"casket.kct"}, cfg.Databases)
}

func TestConfigCheck(t *testing.T) {
	dir := t.TempDir()
	check := func(args ...string) (code int, said, complained string) {
		var stdout, stderr bytes.Buffer
		code = run(append([]string{"config", "check"}, args...), &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	port := freeport.Take(t)
	code, said, complained := check("-host", "127.0.0.1", "-port", itoa(port), "-ulog", filepath.Join(dir, "ulog"), "-sid", "1",
		"-bgs", filepath.Join(dir, "bgs"), filepath.Join(dir, "a.kct"))
	require.Zero(t, code, complained)
	require.Equal(t, "note: -bgs: the directory "+dir+"/bgs is not there: the server makes it at its start\n"+
		"note: -ulog: the directory "+dir+"/ulog is not there: the server makes it at its start\nthe configuration is good\n", said)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "a check creates nothing")

	code, _, complained = check("-host", "127.0.0.1", "-port", itoa(port), "-ulog", "u", "-lock-port", itoa(port), "-log", "nodir/log",
		"-services", "nodir/s.kct", "nodir/a.kct", "b.what")
	require.Equal(t, 1, code)
	for _, want := range []string{
		"update log requires the server ID", "-port and -lock-port have the same port", "-log: nodir/log cannot be written",
		"database nodir/a.kct: nodir/a.kct cannot be written", "database nodir/s.kct: ", "database b.what: invalid operation: unknown database type",
	} {
		require.Contains(t, complained, want)
	}
	s := start(t)
	code, said, complained = check("-port", itoa(s.port))
	require.Zero(t, code, complained)
	require.Contains(t, said, "is in use, maybe by the server that is running")
	require.Equal(t, 1, run([]string{"config"}, &bytes.Buffer{}, &bytes.Buffer{}))
}

func itoa(n int) string { return strconv.Itoa(n) }
