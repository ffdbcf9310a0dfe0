package manual

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"gotycoon/internal/needs"
)

// sample has the characters that need care: quotes, dashes, backslashes, a colon, a line that
// begins with a dot.
func sample() *Program {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	set.String("port", "", "`number` of the port: don't forget it")
	set.Bool("json", false, ".begins with a dot")
	set.Bool("secret", false, "")
	_ = set.MarkHidden("secret")
	return &Program{
		Name: "tool", About: "does \\ things",
		Commands: []Command{{Name: "set", Args: "key \"value\"", Help: "it's stored", Options: set}, {Name: "see", Help: "show: all"}},
		Words:    []Command{{Name: "man", Help: "print this"}},
		Notes:    []Section{{Title: "EXIT STATUS", Text: []string{"0, or 1."}}},
		See:      []string{"other", "third"},
	}
}

func write(t *testing.T, name string, fill func(*strings.Builder) error) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, fill(&b))
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	return path
}

// run runs a program that may not be installed here. Debian's package has its name.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(needs.Program(t, name, name), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestPage(t *testing.T) {
	path := write(t, "tool.1", func(b *strings.Builder) error { return sample().Page(b) })
	require.Empty(t, run(t, "mandoc", "-T", "lint", "-W", "error", path))
	text := run(t, "mandoc", "-T", "ascii", path)
	for from := 0; ; { // bold and underlined letters are printed over
		at := strings.IndexByte(text[from:], 8)
		if at < 0 {
			break
		}
		text = text[:from+at-1] + text[from+at+1:]
	}
	for _, want := range []string{
		"tool - does \\ things", `tool set key "value"`, "It's stored.", "-port number", "Number of the port: don't forget it.",
		".begins with a dot.", "0, or 1.", "other(1), third(1)",
	} {
		require.Contains(t, strings.Join(strings.Fields(text), " "), want)
	}
	require.NotContains(t, text, "secret")
}

func TestBash(t *testing.T) {
	path := write(t, "tool.bash", func(b *strings.Builder) error { return sample().Completion(b, "bash") })
	complete := func(words ...string) string {
		return run(t, "bash", append([]string{"-c", `. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _tool; echo "${COMPREPLY[*]}"`, path, "tool"}, words...)...)
	}
	require.Equal(t, "set see\n", complete("se"))
	require.Equal(t, "-port -json\n", complete("set", "-"))
	require.Equal(t, "-port\n", complete("set", "-json", "-p"))
	require.Equal(t, "\n", complete("see", "-"))
	require.Equal(t, "\n", complete("set", "x"))
}

func TestFish(t *testing.T) {
	path := write(t, "tool.fish", func(b *strings.Builder) error { return sample().Completion(b, "fish") })
	require.Equal(t, "see\tshow: all\nset\tit’s stored\n", run(t, "fish", "--no-config", "-c", "source "+path+"; complete -C 'tool se'"))
	require.Contains(t, run(t, "fish", "--no-config", "-c", "source "+path+"; complete -C 'tool set -p'"), "-port")
}

func TestZsh(t *testing.T) {
	path := write(t, "_tool", func(b *strings.Builder) error { return sample().Completion(b, "zsh") })
	require.Empty(t, run(t, "zsh", "-n", path))
}

func TestUnknownShell(t *testing.T) {
	require.ErrorContains(t, sample().Completion(new(strings.Builder), "csh"), "one of bash, zsh, fish")
}
