package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/version"
)

// Everything of a server that tells a version tells the same one. The programs and the package are
// compared in compat/packages/life.sh.
func TestOneVersion(t *testing.T) {
	s, addr := startAdmin(t, nil)
	ready(t, addr)
	built := version.Current()
	ask := func(path string) string {
		_, body := fetch(t, addr, path)
		return body
	}
	require.Equal(t, fmt.Sprintf("gotycoon %s\ngo %s\nrevision %s\n", built.Version, built.Go, built.Revision), ask("/version"))
	require.Contains(t, ask("/metrics"), fmt.Sprintf("gotycoon_build_info{go=%q,revision=%q,version=%q} 1\n", built.Go, built.Revision, built.Version))
	_, report := s.dial().get("/rpc/report")
	require.Contains(t, report, "conf_kt_version\t0.9.56b (2.19)\n", "clients look at that")
	require.Contains(t, report, fmt.Sprintf("conf_kt_features\t(epoll)(gotycoon %s)(revision %s)\n", built.Version, built.Revision))
	for _, want := range []string{fmt.Sprintf(`"version":%q`, built.Version), fmt.Sprintf(`"revision":%q`, built.Revision)} {
		eventually(t, func() bool { return strings.Contains(ask("/api/server"), want) })
	}
	for _, want := range []string{
		fmt.Sprintf(`{"name":"gotycoon","value":%q}`, built.Version), fmt.Sprintf(`{"name":"Revision","value":%q}`, built.Revision),
	} {
		require.Contains(t, ask("/api/facts"), want)
	}
}
