package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"gotycoon/server"
)

// settings are what a server process is started with. They reach it in the environment.
type settings struct {
	Name      string // its address for the others
	Members   string // empty: it joins
	Secret    string
	SID       int // 0: a witness
	Memcached int
	Services  servicePorts
	Etcd      string
	Certs     string        // directory; empty: plaintext
	Ahead     time.Duration // how far its clock is ahead
	Disk      time.Duration // how long its disk may hang
}

const variable = "GOTYCOON_CLUSTER_MEMBER"

// TestMain is also the server: a process of its own with another clock.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(variable); ok {
		os.Exit(serve(text))
	}
	os.Exit(m.Run())
}

func serve(text string) int {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return 1
	}
	cfg := server.DefaultConfig()
	for i, arg := range os.Args[:len(os.Args)-1] {
		if arg == "-port" {
			cfg.Port, _ = strconv.Atoi(os.Args[i+1])
		}
	}
	cfg.Cluster.Name, cfg.Cluster.Members, cfg.Cluster.Advertise, cfg.Cluster.Join = "test", s.Members, s.Name, s.Members == ""
	cfg.Cluster.Etcd, cfg.Cluster.DiskTimeout = s.Etcd, s.Disk
	cfg.Members.Secret = s.Secret
	if s.Certs != "" {
		cfg.TLS = certificates(s.Certs)
	}
	if s.SID > 0 {
		cfg.ServerID, cfg.UpdateLog, cfg.Databases = s.SID, "ulog", []string{"a.kct"}
		cfg.UpdateLogLimit = logLimit
		cfg.Plugins.Server, cfg.Plugins.Expr = "ktplugservmemc.so", fmt.Sprintf("port=%d", s.Memcached)
		cfg.CheckpointSize = 256 << 10
		cfg.Services.LockPort, cfg.Services.SequencePort, cfg.Services.CounterPort = s.Services.Lock, s.Services.Sequence, s.Services.Counter
		cfg.Services.ServerNo = 1 // one for all: only the primary gives out numbers
		cfg.Forward = s.Services != servicePorts{}
	}
	cfg.Now = func() time.Time { return time.Now().Add(s.Ahead) }
	return server.Run(context.Background(), cfg, os.Stdout, os.Stderr)
}

const (
	// diskTimeout is how long the disk of a primary may hang: shorter than the longest misfortunes.
	diskTimeout = 1500 * time.Millisecond
	// soundTimeout is the same for a disk that never hangs, and may be busy with other tests.
	soundTimeout = 5 * time.Second
)

// logLimit is the size of a segment of the update log: small, so that there are many.
const logLimit = 1 << 20
