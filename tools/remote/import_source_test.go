package remote_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// redisFiles are files that redis has written; see the README there.
const redisFiles = "../redisfile/testdata/"

func TestImportFromRedis(t *testing.T) {
	const database = "; left out: 1 hash, 1 list, 2 set, 1 sorted set, 1 stream, 2 of database 3 (-redis-db 3)\n"
	for name, args := range map[string][]string{
		"binary": {"-db", "1", "-from", "redis-rdb", redisFiles + "dump.rdb"},
		"text":   {"-db", "tree", "-from", "redis-rdb", redisFiles + "dump.rdb"},
		"aof":    {"-db", "1", "-from", "redis-aof", redisFiles + "preamble.aof"},
	} {
		clear(t)
		r := command(t, "", at("import", args...)...)
		require.Equal(t, 1, r.exit, "%s: what was left out makes it fail", name)
		require.Contains(t, r.stderr, "all strings of database 0 were stored", name)
		require.Contains(t, r.stderr, database, name)
		require.Equal(t, "GREEN-leaf\t9223372036854775807\n", succeed(t, "", "get", "-db", "1", "-pt", "tea"), name)
		require.Equal(t, "3\t4102444800\n", succeed(t, "", "get", "-db", "1", "-pt", "e"), name)
	}

	clear(t)
	succeed(t, "", "set", "-db", "1", "mine", "stays")
	r := command(t, "", at("import", "-db", "1", "-xt", "-4000000000", "-redis-db", "3", "-from", "redis-aof", redisFiles+"log")...)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "all strings of database 3 were stored; left out: 1 HSET\n")
	require.Equal(t, "mine\tstays\t9223372036854775807\nother\t3\t4000000000\n", succeed(t, "", "list", "-db", "1", "-pv", "-pt"))

	other := filepath.Join(t.TempDir(), "other.aof")
	require.NoError(t, os.WriteFile(other, []byte("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n"), 0o600))
	r = command(t, "", at("import", "-db", "1", "-redis-db", "3", "-from", "redis-aof", other)...)
	require.Zero(t, r.exit, r.stderr)
	require.Contains(t, r.stderr, "not asked for: 1 of database 0 (-redis-db 0)")

	flush := filepath.Join(t.TempDir(), "flush.aof")
	require.NoError(t, os.WriteFile(flush, []byte("*1\r\n$8\r\nFLUSHALL\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"), 0o600))
	r = command(t, "", at("import", "-db", "1", "-from", "redis-aof", flush)...)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "import into an empty one")
	clear(t)
	succeed(t, "", "import", "-db", "1", "-from", "redis-aof", flush)
	require.Equal(t, map[string]string{"a": "1"}, listed(t))
}

// memcached is a peer that says what memcached 1.6.18 has said when these keys were stored in it,
// the one with a blank and a percent sign as set "session%1", flags 7.
func memcached(t *testing.T) (addr string) {
	t.Helper()
	const list = "key=session%251 exp=2000000000 la=1795457901 cas=204 fetch=yes cls=1 size=75\n" +
		"key=tea exp=-1 la=1795457876 cas=1 fetch=yes cls=1 size=67\n" +
		"key=gone exp=-1 la=1795457876 cas=3 fetch=yes cls=1 size=64\nEND\r\n"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	serve := func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			reply := list
			if strings.HasPrefix(line, "get ") {
				reply = "END\r\n"
				if strings.Contains(line, " tea") && strings.Contains(line, " session%1") {
					reply = "VALUE tea 0 5\r\ngreen\r\nVALUE session%1 7 3\r\na\r\n\r\nEND\r\n"
				}
			}
			_, _ = c.Write([]byte(reply)) // the client sees what is missing
		}
	}
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go serve(c)
		}
	}()
	return l.Addr().String()
}

func TestImportFromMemcached(t *testing.T) {
	clear(t)
	addr := memcached(t)
	require.Equal(t, ".. (2)\n", succeed(t, "", "import", "-db", "tree", "-from", "memcached", addr))
	require.Equal(t, "73657373696F6E2531\t610D0A\t2000000000\n746561\t677265656E\t9223372036854775807\n",
		strings.ReplaceAll(succeed(t, "", "list", "-db", "tree", "-pv", "-pt", "-px"), " ", ""))
	succeed(t, "", "import", "-db", "tree", "-from", "memcached", "-flags", addr)
	require.Equal(t, "green\x00\x00\x00\x00\n", succeed(t, "", "get", "-db", "tree", "tea"))
	r := command(t, "", at("import", "-from", "memcached", "127.0.0.1:"+port)...)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "lru_crawler metadump: ")
}

func TestImportOfTables(t *testing.T) {
	const csv = "\ufeffname,price,until,note\ntea,3,4102444800,\"with, comma\"\ncoffee,4,,\n"
	const jsonl = `{"name":"tea","price":3,"until":4102444800,"note":"with, comma"}` + "\n" + `{"name":"coffee","price":4,"until":null,"note":""}`
	for _, row := range []struct {
		in   string
		args string
		want map[string]string
	}{
		{csv, "-from csv", map[string]string{"tea": "3", "coffee": "4"}},
		{csv, "-from csv -key name -value note -expires until", map[string]string{"tea": "with, comma", "coffee": ""}},
		{csv, "-from csv -value price,note", map[string]string{"tea": `{"note":"with, comma","price":"3"}`, "coffee": `{"note":"","price":"4"}`}},
		{csv, "-from csv -value * -expires until", map[string]string{"tea": `{"note":"with, comma","price":"3"}`, "coffee": `{"note":"","price":"4"}`}},
		{"1;2;3\n4;5;6\n", "-from csv -no-header -separator ; -key 3 -value 1", map[string]string{"3": "1", "6": "4"}},
		{"a\tb\n1\t2\n", `-from csv -separator \t`, map[string]string{"1": "2"}},
		{jsonl, "-from jsonl -key name -value price -expires until", map[string]string{"tea": "3", "coffee": "4"}},
		{jsonl, "-from jsonl -key name -value price,note", map[string]string{"tea": `{"note":"with, comma","price":3}`, "coffee": `{"note":"","price":4}`}},
		{jsonl, "-from jsonl -key name -value * -expires until", map[string]string{"tea": `{"note":"with, comma","price":3}`, "coffee": `{"note":"","price":4}`}},
	} {
		clear(t)
		succeed(t, row.in, "import", append([]string{"-db", "tree"}, strings.Fields(row.args)...)...)
		require.Equal(t, row.want, listed(t), row.args)
		if strings.Contains(row.args, "-expires") {
			require.Contains(t, succeed(t, "", "get", "-db", "tree", "-pt", "tea"), "\t4102444800\n")
			require.Contains(t, succeed(t, "", "get", "-db", "tree", "-pt", "coffee"), "\t9223372036854775807\n")
		}
	}
	for in, want := range map[string]string{
		"-from csv|a,b\n1\n":                 "line 2 has 1 columns, and the first line has 2: put a value with \",\" in it in double quotes",
		"-from csv|a,b\n1,x\"2\n":            "line 2, column 4: a double quote within a value",
		"-from csv|a,b\n1,\"2\n3,4\n":        "the value in double quotes that begins in line 2 has no end",
		"-from csv|a;b\n1;2\n":               `there is only the column "a;b": -separator names the character`,
		"-from csv|":                         "standard input: the file is empty: its first line must name the columns",
		"-from csv -key c|a,b\n1,2\n":        `there is no column "c"; there are ["a" "b"]`,
		"-from csv -expires b|a,b\n1,soon\n": "line 2: column \"b\": the expiration time \"soon\"",
		"-from csv -separator xx|":           "-separator: must be one character",
		"-from csv -separator \"|":           "-separator: must be one character, no quote",
		"-from csv nofile|":                  "nofile: open error\nktremotemgr: open nofile: no such file or directory",
		"-from jsonl|{\"key\":\"a\"}":        `line 1: there is no "value"; there are ["key"]: -key, -value and -expires name them`,
		"-from jsonl|[]":                     "line 1: there is a JSON array: each line must be an object",
		"-from jsonl|{\"key\":\"a\",\"value\":1}\n\n\nkey\tvalue\n{}\n": "line 4: this is no JSON (invalid character 'k' looking for beginning of value): each line",
		"-from jsonl|{\"key\":\"a\",\"value\":1}\n{\"key\":\n":          "line 2: the file ends within an object",
		"-from jsonl|\n{\"key\":\"a\",\n\"value_base64\":\"&\"}":        "line 3: value_base64 is no text in Base64",
		"-from redis-rdb -redis-db -1|":                                 "-redis-db: must be 0 or more",
		"-from tsv|":                                                    "-from: must be redis-rdb",
		"-from memcached|":                                              "give the address",
		"-from redis-aof|":                                              "give the file",
		"-from redis-rdb|REDIX0011":                                     "does not begin with REDIS",
		"-from redis-rdb|REDIS0099" + "\xff\xff":                        "its version is 99",
	} {
		args, text, _ := strings.Cut(in, "|")
		r := command(t, text, at("import", strings.Fields(args)...)...)
		require.Equal(t, 1, r.exit, in)
		require.Contains(t, r.stderr, want, in)
	}
}

// What list -json prints is imported without any column option.
func TestImportOfOurJSON(t *testing.T) {
	clear(t)
	succeed(t, "a\tvalue\n", "import", "-db", "tree")
	succeed(t, "", "set", "-db", "tree", "-sx", "-xt", "-4102444800", "ff", "00fe")
	printed := succeed(t, "", "list", "-db", "tree", "-json", "-pv", "-pt")
	require.Contains(t, printed, "key_base64")
	clear(t)
	succeed(t, printed, "import", "-db", "tree", "-from", "jsonl")
	require.Equal(t, printed, succeed(t, "", "list", "-db", "tree", "-json", "-pv", "-pt"))
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "{\"key\":\"k%d\",\"value\":\"v\",\"xt\":%d}\n", i, 4_000_000_000+i)
	}
	succeed(t, many.String(), "import", "-db", "1", "-from", "jsonl")
	require.Equal(t, "v\t4000004999\n", succeed(t, "", "get", "-db", "tree", "-pt", "k4999"))
}

// A table without -from would be read as keys whose records are to be removed.
func TestOptionsOfOtherFormatsAreRefused(t *testing.T) {
	clear(t)
	succeed(t, "", "set", "japan,tokyo", "kept")
	for _, args := range [][]string{
		{"-key", "name"}, {"-value", "c"}, {"-separator", ";"}, {"-no-header"}, {"-flags"}, {"-redis-db", "1"},
		{"-from", "csv", "-flags"}, {"-from", "jsonl", "-separator", "x"}, {"-from", "redis-rdb", "-key", "x"},
	} {
		r := command(t, "japan,tokyo\n", at("import", args...)...)
		require.Equal(t, 1, r.exit, args)
		require.Contains(t, r.stderr, ": is for -from ", args)
	}
	require.Equal(t, "kept\n", succeed(t, "", "get", "japan,tokyo"))
}
