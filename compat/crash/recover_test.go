package crash

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/ulog"
)

// offline is a database file, a log that is brought into it, and the contents of the file before
// and after.
type offline struct {
	bin        string // kttimedmgr
	dir, log   string
	first      ulog.Stamp // the last update that is in the file
	old, fresh string     // listings
}

const (
	offlineRecords = 30_000
	offlineKills   = 12 // of the default test run, over all commands
)

func newOffline(t *testing.T) *offline {
	o := &offline{bin: ktproc.BuildPlain(t, "kttimedmgr"), dir: t.TempDir()}
	o.log = filepath.Join(o.dir, "ulog")
	log, err := ulog.Open(o.log, ulog.Options{Limit: 1 << 20})
	require.NoError(t, err)
	for i := range 2 * offlineRecords {
		key := fmt.Appendf(nil, "key%06d", i*7919%offlineRecords)
		at, err := log.Append([]ulog.Update{{SID: 1, Op: ulog.OpSet, Key: key, Value: fmt.Appendf(nil, "\xff\xff\xff\xff\xff%0200d", i)}})
		require.NoError(t, err)
		if i%1000 == 0 {
			require.NoError(t, log.Wait(at))
		}
		if i == offlineRecords-1 {
			o.first = at
		}
	}
	require.NoError(t, log.Close())
	o.must(t, "create", o.file("old"))
	o.must(t, "recover", "-until", fmt.Sprint(o.first), o.file("old"), o.log)
	copyFile(t, o.file("old"), o.file("fresh"))
	o.must(t, "recover", "-ts", fmt.Sprint(o.first), o.file("fresh"), o.log)
	o.old, o.fresh = o.list(t, o.file("old")), o.list(t, o.file("fresh"))
	require.NotEqual(t, o.old, o.fresh)
	return o
}

func (o *offline) file(name string) string { return filepath.Join(o.dir, name+".kct") }

// must runs the tool and returns what it prints.
func (o *offline) must(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(o.bin, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "%v: %s", args, errs.String())
	return out.String()
}

// list returns all records of a file that must be sound.
func (o *offline) list(t *testing.T, path string) string {
	t.Helper()
	o.must(t, "verify", path)
	return o.must(t, "list", "-pv", path)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, 0o600))
}

// TestKillOffline kills the tools that write files at random moments. Each time the file must be
// the old or the new one, and the next run must complete the work.
func TestKillOffline(t *testing.T) {
	o := newOffline(t)
	seed := number(t, seedEnv, int(time.Now().UnixNano()))
	t.Logf("%s=%d", seedEnv, seed)
	kills := max(number(t, longKills, offlineKills)/3, 1)
	for i, command := range []struct {
		name string
		args func(path, other string) []string
		may  []string // listings of the file afterwards
	}{
		{"recover", func(path, _ string) []string { return []string{"recover", "-ts", fmt.Sprint(o.first), path, o.log} }, []string{o.old, o.fresh}},
		{"compact", func(path, _ string) []string { return []string{"compact", path} }, []string{o.old}},
		{"repair", func(path, other string) []string { return []string{"repair", path, other} }, []string{o.old}},
	} {
		t.Run(command.name, func(t *testing.T) {
			t.Parallel() // most of the time goes by in fsync
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(77+i)))
			work := filepath.Join(o.dir, "work-"+command.name)
			path, other := filepath.Join(work, "a.kct"), filepath.Join(work, "b.kct")
			args := command.args(path, other)
			prepare := func() {
				require.NoError(t, os.RemoveAll(work))
				require.NoError(t, os.Mkdir(work, 0o755))
				copyFile(t, o.file("old"), path)
			}
			prepare()
			begin := time.Now()
			o.must(t, args...)
			took := time.Since(begin)
			for range kills {
				prepare()
				o.kill(t, time.Duration(rng.Int64N(int64(took)*5/4)), args)
				require.Contains(t, command.may, o.list(t, path))
				if exists(other) {
					require.Equal(t, o.old, o.list(t, other))
					require.NoError(t, os.Remove(other))
				}
				o.must(t, args...)
				require.Equal(t, command.may[len(command.may)-1], o.list(t, path))
				left, err := filepath.Glob(filepath.Join(work, "*.rebuild*"))
				require.NoError(t, err)
				require.Empty(t, left)
			}
		})
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// kill starts the tool and kills it.
func (o *offline) kill(t *testing.T, after time.Duration, args []string) {
	t.Helper()
	cmd := exec.Command(o.bin, args...)
	cmd.Stdout = io.Discard
	require.NoError(t, cmd.Start())
	time.Sleep(after) //lint:sleep the moment of the kill is meant to be random
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// TestFullDiskOffline lets the tools fill a small disk: a clear error, and the old file is there.
func TestFullDiskOffline(t *testing.T) {
	small := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", small).CombinedOutput(); err != nil {
		t.Skipf("a small disk cannot be made here: %s", out)
	}
	defer func() { require.NoError(t, exec.Command("umount", small).Run()) }()
	o := newOffline(t)
	path := filepath.Join(small, "a.kct")
	copyFile(t, o.file("old"), path)
	for _, args := range [][]string{
		{"recover", "-ts", fmt.Sprint(o.first), path, o.log},
		{"compact", path},
		{"repair", path, filepath.Join(small, "b.kct")},
	} {
		var errs bytes.Buffer
		cmd := exec.Command(o.bin, args...)
		cmd.Stdout, cmd.Stderr = io.Discard, &errs
		require.Error(t, cmd.Run(), "%v", args)
		require.Equal(t, 1, cmd.ProcessState.ExitCode())
		require.Contains(t, errs.String(), "no space left on device", "%v", args)
		require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
		require.Equal(t, o.old, o.list(t, path))
		left, err := os.ReadDir(small)
		require.NoError(t, err)
		require.Len(t, left, 1)
	}
}
