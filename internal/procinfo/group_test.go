package procinfo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// system writes files below a directory that takes the place of the root.
func system(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

const (
	secondMount = "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	firstMount  = "29 20 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)

func TestTheLeastLimitOnTheWayUpCounts(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"version 2, its own group": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/kt.service\n", "proc/self/mountinfo": secondMount,
			"sys/fs/cgroup/system.slice/kt.service/memory.max": "2147483648\n", "sys/fs/cgroup/system.slice/memory.max": "max\n",
		}, 2 << 30},
		"version 2, a group above": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": secondMount,
			"sys/fs/cgroup/a/b/memory.max": "2147483648\n", "sys/fs/cgroup/a/memory.max": "1073741824\n",
		}, 1 << 30},
		"version 2, the root of a container": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": secondMount, "sys/fs/cgroup/memory.max": "1073741824\n",
		}, 1 << 30},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:cpu:/x\n4:memory:/kt\n0::/\n", "proc/self/mountinfo": firstMount,
			"sys/fs/cgroup/memory/kt/memory.limit_in_bytes": "1073741824\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 1 << 30},
		"version 1, the path of the host": {map[string]string{
			"proc/self/cgroup":                           "4:cpuset,memory:/docker/1234\n",
			"proc/self/mountinfo":                        "31 20 0:27 /docker/1234 /sys/fs/cgroup/memory ro - cgroup cgroup rw,cpuset,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
		}, 1 << 30},
		"no limit": {map[string]string{
			"proc/self/cgroup": "4:memory:/\n", "proc/self/mountinfo": firstMount,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		"no groups": {map[string]string{}, 0},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, groupLimit(system(t, c.files))) })
	}
}
