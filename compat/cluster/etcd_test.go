package cluster

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
	"gotycoon/internal/needs"
)

// startEtcd starts an etcd on the loopback address.
func startEtcd(t *testing.T) (address string) {
	t.Helper()
	path := needs.Program(t, "etcd-server", "etcd")
	dir := t.TempDir()
	client, peer := "http://"+freeport.Addr(t), "http://"+freeport.Addr(t)
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd := exec.Command(path, "--data-dir", filepath.Join(dir, "data"), "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // an error says that it was killed
		require.NoError(t, log.Close())
	})
	web := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	require.True(t, eventually(patience, func() bool {
		resp, err := web.Get(client + "/health")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}), "etcd does not start")
	return client + "/test"
}
