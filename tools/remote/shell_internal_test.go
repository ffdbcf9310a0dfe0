package remote

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                            nil,
		"  # all of it":               nil,
		"get a":                       {"get", "a"},
		"\tget  a#b #c":               {"get", "a#b"},
		`set 'a b' "c d"`:             {"set", "a b", "c d"},
		`set "\n\t\r\\\"\x00\xff" ''`: {"set", "\n\t\r\\\"\x00\xff", ""},
		`set a\ b 'c\n' "\q\x0g"`:     {"set", "a b", `c\n`, "qx0g"},
		`set a"b c"d\`:                {"set", `ab cd\`},
		`regex '^a.*$'`:               {"regex", "^a.*$"},
	} {
		have, err := splitWords(line)
		require.NoError(t, err, line)
		require.Equal(t, want, have, line)
	}
	for _, line := range []string{`get "a`, `get 'a`, `get "a\"`, `get 'a"`} {
		_, err := splitWords(line)
		require.ErrorIs(t, err, errQuote, line)
	}
}

// A word that was quoted is read as the text that it stands for, whatever the text.
func TestQuotedWordsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.StringMatching(`[ "'\\#xa\t\n]*`)), 1, 4).Draw(t, "texts")
		var quoted []string
		for _, text := range texts {
			quoted = append(quoted, quoteWord(text))
		}
		have, err := splitWords(strings.Join(quoted, " "))
		require.NoError(t, err)
		require.Equal(t, texts, have)
	})
}

func TestHistoryKeepsNoSecrets(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	h, err := openHistory()
	require.NoError(t, err)
	for _, line := range []string{"get a", "get a", "", " get hidden", "set a secret", "setbulk a secret", `script f k secret`, "list -pv"} {
		h.Add(line)
	}
	require.Equal(t, 6, h.Len(), "all but empty and repeated lines can be called back")
	require.Equal(t, "list -pv", h.At(0))
	require.Equal(t, "set a secret", h.At(3))
	require.NoError(t, h.close())

	path := filepath.Join(dir, "ktremotemgr", "history")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "get a\nlist -pv\n", string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	h, err = openHistory()
	require.NoError(t, err)
	defer h.close()
	require.Equal(t, []string{"get a", "list -pv"}, h.lines)
}

func TestHistoryIsBounded(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	path, err := statePath()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	var lines strings.Builder
	for i := range 2*keepHistory + 1 {
		lines.WriteString("get " + strconv.Itoa(i) + "\n")
	}
	require.NoError(t, os.WriteFile(path, []byte(lines.String()), 0o600))
	h, err := openHistory()
	require.NoError(t, err)
	defer h.close()
	require.Equal(t, keepHistory, h.Len())
	h.Add("get more")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, keepHistory+1, strings.Count(string(text), "\n"))
	require.True(t, strings.HasSuffix(string(text), "get 2000\nget more\n"))
}

func TestWhereTheHistoryIs(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "relative/is/ignored")
	t.Setenv("HOME", "/home/ann")
	path, err := statePath()
	require.NoError(t, err)
	require.Equal(t, "/home/ann/.local/state/ktremotemgr/history", path)
	t.Setenv("XDG_STATE_HOME", "/var/state")
	path, err = statePath()
	require.NoError(t, err)
	require.Equal(t, "/var/state/ktremotemgr/history", path)
}

// typing is a terminal at which keys are pressed.
func typing(keys string, complete func(string) (string, []string)) (e *editor, screen *strings.Builder) {
	screen = new(strings.Builder)
	e = &editor{out: screen, complete: complete}
	e.attach(strings.NewReader(keys), new(lineHistory))
	return e, screen
}

func TestEditor(t *testing.T) {
	e, screen := typing("nonsense\x03get a\x01\x7f\r\x1b[A\x7fb\r\x04", func(line string) (string, []string) { return line, nil })
	for _, want := range []string{"get a", "get b"} {
		line, err := e.read("> ")
		require.NoError(t, err)
		require.Equal(t, want, line)
	}
	_, err := e.read("> ")
	require.ErrorIs(t, err, io.EOF)
	require.Contains(t, screen.String(), "> ")
}

func TestTabCompletes(t *testing.T) {
	e, screen := typing("g\tj\t!\t\r", func(line string) (string, []string) {
		switch line {
		case "g":
			return "get ", []string{"get"}
		case "get j":
			return line, []string{"japan", "java"}
		}
		return line, nil
	})
	line, err := e.read("> ")
	require.NoError(t, err)
	require.Equal(t, "get j!", line)
	require.Contains(t, screen.String(), "japan  java\r\n")
}
