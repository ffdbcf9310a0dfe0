package ktproc

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Build builds a command of this module, or finds it up to date, and returns its path. A test with
// the race detector gets a command with it too.
func Build(tb testing.TB, name string) string {
	tb.Helper()
	if raceEnabled {
		return build(tb, ".", "gotycoon/cmd/"+name, "race")
	}
	return BuildPlain(tb, name)
}

// BuildPlain is Build without the race detector, for tests of memory, of which the race detector
// takes several times as much, and for tests that try commands rather than concurrency.
func BuildPlain(tb testing.TB, name string) string {
	tb.Helper()
	return build(tb, ".", "gotycoon/cmd/"+name, "plain")
}

// BuildOf is BuildPlain for a command of the module in another directory.
func BuildOf(tb testing.TB, module, command string) string {
	tb.Helper()
	return build(tb, module, command, "plain")
}

// build builds a command into bin/test of the checkout, where the next test finds it: go build
// leaves a file alone that is up to date, and to link a command anew takes several times as long as
// many of the tests that start it. So sources must not change while tests run. Where the checkout
// cannot be written, the test has a command of its own.
func build(tb testing.TB, module, command, kind string) string {
	tb.Helper()
	dir, unlock := place(tb, kind, "lock-"+filepath.Base(module))
	defer unlock()
	bin := filepath.Join(dir, filepath.Base(command))
	args := []string{"-C", module, "build", "-buildvcs=false", "-o", bin}
	if kind == "race" {
		args = append(args, "-race")
	} else {
		args = append(args, "-trimpath") // as in the Makefile, whose compiled packages it shares
	}
	out, err := exec.Command("go", append(args, command)...).CombinedOutput()
	if err != nil {
		tb.Fatalf("build %s: %v\n%s", command, err, out)
	}
	return bin
}

// place returns the directory for commands of a kind. Until unlock is called nobody else builds
// with the same lock. Commands of one module are compiled from the same packages, which is done
// once then. Those of another module may take long, and have a lock of their own.
func place(tb testing.TB, kind, lock string) (dir string, unlock func()) {
	tb.Helper()
	dir = filepath.Join(checkout(tb), "bin", "test", kind)
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		var f *os.File
		// Create changes the file's time, which go test sees: it keeps no result of a test that
		// comes here, because it does not know of the sources of the command.
		if f, err = os.Create(filepath.Join(dir, lock)); err == nil {
			if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
				tb.Fatal(err)
			}
			return dir, func() { f.Close() }
		}
	}
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		tb.Fatal(err)
	}
	return tb.TempDir(), func() {}
}

// checkout returns the root of this module, in or below which every test of its packages runs.
func checkout(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		var text []byte
		text, err = os.ReadFile(filepath.Join(dir, "go.mod"))
		if strings.HasPrefix(string(text), "module gotycoon\n") {
			return dir
		}
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			err = nil
		}
	}
	tb.Fatalf("no go.mod of gotycoon above the working directory: %v", err)
	return ""
}
