package redisfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/tools/redisfile"
)

// keys are keys in memory, as VALUE@EXPIRES.
type keys map[string]string

func (k keys) Get(key string) ([]byte, int64, bool, error) {
	text, found := k[key]
	at := strings.LastIndexByte(text, '@')
	if !found {
		return nil, redisfile.Never, false, nil
	}
	var expires int64
	_, err := fmt.Sscan(text[at+1:], &expires)
	return []byte(text[:at]), expires, true, err
}

func (k keys) Set(key string, value []byte, expires int64) error {
	k[key] = fmt.Sprintf("%s@%d", value, expires)
	return nil
}

func (k keys) Remove(key string) error { delete(k, key); return nil }

func (k keys) Clear() error { clear(k); return nil }

// written is what the commands of testdata leave in database 0.
func written() keys {
	return keys{
		"tea": "GREEN-leaf@0", "counter": "42@0", "session:1": "abc@0", "old": "soon@4102444800",
		"packed": strings.Repeat("x", 88) + strings.Repeat("y", 45) + "@0",
		"int8":   "-3@0", "int16": "-3000@0", "int32": "1000000000@0", "int64": "123456789012345@0",
		"bytes \xff\x01": "two\nlines \x80@0", "a": "9@4102444800", "d": "3@0", "e": "3@4102444800", "keep": "2@4102444800",
		"inside": "multi@0", "number": "5@0", "new": "value@0", "float": "1.5@0", "script": "effect@0",
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", path))
	require.NoError(t, err)
	return b
}

// rdb reads an RDB file.
func rdb(file []byte, database int) (keys, redisfile.Left, error) {
	have := keys{}
	left, err := redisfile.RDB(bytes.NewReader(file), database, func(key, value []byte, expires int64) error {
		return have.Set(string(key), value, expires)
	})
	return have, left, err
}

func TestRDB(t *testing.T) {
	have, left, err := rdb(read(t, "dump.rdb"), 0)
	require.NoError(t, err)
	require.Equal(t, written(), have)
	require.Equal(t, redisfile.Left{
		Types:     map[string]int{"hash": 1, "list": 1, "set": 2, "sorted set": 1, "stream": 1},
		Databases: map[int]int{3: 2},
	}, left)

	have, left, err = rdb(read(t, "dump.rdb"), 3)
	require.NoError(t, err)
	require.Equal(t, keys{"other": "3@0"}, have)
	require.Equal(t, map[string]int{"hash": 1}, left.Types)
	require.Equal(t, len(written())+6, left.Databases[0])
}

// A file that was cut off or changed anywhere is refused.
func TestRDBDamaged(t *testing.T) {
	file := read(t, "dump.rdb")
	for n := range file {
		_, _, err := rdb(file[:n], 0)
		require.ErrorContains(t, err, "damaged", "the first %d bytes", n)
		changed := bytes.Clone(file)
		changed[n] ^= 0x10
		_, _, err = rdb(changed, 0)
		require.Error(t, err, "byte %d changed", n)
	}
	stop := errors.New("stop")
	_, err := redisfile.RDB(bytes.NewReader(file), 0, func(_, _ []byte, _ int64) error { return stop })
	require.ErrorIs(t, err, stop)
}

// aof reads the files of an append-only file.
func aof(path string) (have keys, left redisfile.Left, err error) {
	have = keys{}
	files, err := redisfile.AOFFiles(filepath.Join("testdata", path))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, left, err
		}
		one, err := redisfile.AOF(bytes.NewReader(b), 0, have)
		if err != nil {
			return nil, left, err
		}
		left.Add(one)
	}
	return have, left, err
}

func TestAOF(t *testing.T) {
	for _, path := range []string{"log", "log/appendonly.aof.manifest"} {
		have, left, err := aof(path)
		require.NoError(t, err)
		require.Equal(t, written(), have)
		require.Equal(t, map[int]int{3: 2}, left.Databases)
		require.False(t, left.Cut)
		require.Subset(t, left.Types, map[string]int{"HSET": 1, "LPUSH": 1, "SADD": 2, "ZADD": 1, "XADD": 1})
	}
	have, left, err := aof("preamble.aof")
	require.NoError(t, err)
	want := written()
	want["after"] = "rewrite@0"
	require.Equal(t, want, have)
	require.Equal(t, map[string]int{"hash": 1, "list": 1, "set": 2, "sorted set": 1, "stream": 1}, left.Types)
	_, _, err = aof("..")
	require.ErrorContains(t, err, "0 manifests")
}

// A command at the end that is cut off is left out, and so is a transaction without its end.
func TestAOFCut(t *testing.T) {
	const set = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
	multi := "*1\r\n$5\r\nMULTI\r\n" + set
	for n := range len(set) {
		have, left := keys{}, redisfile.Left{}
		left, err := redisfile.AOF(strings.NewReader(multi+"*1\r\n$4\r\nEXEC\r\n"+set[:n]), 0, have)
		require.NoError(t, err, n)
		require.Equal(t, keys{"a": "1@0"}, have)
		require.Equal(t, n > 0, left.Cut)
	}
	have := keys{}
	left, err := redisfile.AOF(strings.NewReader("#TS:1\r\n"+multi), 0, have)
	require.NoError(t, err)
	require.True(t, left.Cut)
	require.Empty(t, have)
}

func TestAOFCommands(t *testing.T) {
	for commands, want := range map[string]keys{
		"set a 1|flushall|set b 2":                          {"b": "2@0"},
		"set a 1|select 1|set a 2|select 0|append a x":      {"a": "1x@0"},
		"set a 1 pxat 2500|set b 1 exat 7|persist b":        {"a": "1@2", "b": "1@0"},
		"decr a|decrby a 4|incr a":                          {"a": "-4@0"},
		"setrange a 2 x":                                    {"a": "\x00\x00x@0"},
		"set a 1|hset h x y|rename h a":                     {},
		"set a 1|rename a a":                                {"a": "1@0"},
		"set a 1|set b 2|copy a b replace|unlink a":         {"b": "1@0"},
		"set a 1|set a 2 ex 10":                             {"a": "1@0"}, // counted: redis writes no such time
		"mset a 1 b 2|expireat a 9|flushdb|pexpireat b 900": {},
	} {
		have := keys{}
		_, err := redisfile.AOF(strings.NewReader(encode(commands)), 0, have)
		require.NoError(t, err, commands)
		require.Equal(t, want, have, commands)
	}
	for _, wrong := range []string{"incr a|set a x|incr a", "set a x|incrby a y", "select x", "setrange a -1 x"} {
		_, err := redisfile.AOF(strings.NewReader(encode(wrong)), 0, keys{})
		require.ErrorContains(t, err, "damaged", wrong)
	}
	for _, wrong := range []string{"hello\r\n", "*0\r\n", "*1\r\nx\r\n", "*1\r\n#\r\n", "*99999999\r\n", "*1\r\n$-1\r\n"} {
		_, err := redisfile.AOF(strings.NewReader(wrong), 0, keys{})
		require.Error(t, err, wrong)
	}
}

// encode writes commands, with | between them, as redis does.
func encode(commands string) string {
	var b strings.Builder
	for command := range strings.SplitSeq(commands, "|") {
		words := strings.Fields(command)
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	return b.String()
}

func FuzzRDB(f *testing.F) {
	file, err := os.ReadFile("testdata/dump.rdb")
	require.NoError(f, err)
	f.Add(file)
	f.Fuzz(func(_ *testing.T, file []byte) {
		_, _, _ = rdb(file, 0) // must not panic, nor take much memory
	})
}

func FuzzAOF(f *testing.F) {
	files, err := filepath.Glob("testdata/log/*.aof")
	require.NoError(f, err)
	for _, name := range append(files, "testdata/preamble.aof") {
		file, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(file)
	}
	f.Fuzz(func(_ *testing.T, file []byte) {
		_, _ = redisfile.AOF(io.LimitReader(bytes.NewReader(file), 1<<20), 0, maps.Clone(keys{}))
	})
}
