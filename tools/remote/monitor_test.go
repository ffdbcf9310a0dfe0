package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/tools/remote"
)

// watching runs a command that watches the server, and makes requests until it has ended.
func watching(t *testing.T, request func(n int), args ...string) string {
	t.Helper()
	var out, errs output
	done := make(chan int, 1)
	go func() {
		done <- remote.Main(context.Background(), at(args[0], args[1:]...), strings.NewReader(""), &out, &errs)
	}()
	for n := 0; ; n++ {
		select {
		case exit := <-done:
			require.Zero(t, exit, errs.String())
			return out.String()
		default:
			request(n)
		}
	}
}

func TestMonitor(t *testing.T) {
	clear(t)
	set := func(n int) {
		command(t, "", at("set", "-db", "tree", fmt.Sprintf("k %d", n), "v")...)
		command(t, "", at("get", "other")...)
	}
	text := watching(t, set, "monitor", "-n", "3", "-prefix", "k ", "-db", "tree")
	require.Regexp(t, `^(\d\d:\d\d:\d\d\.\d{6} (127\.0\.0\.1|\[::1\]):\d+ rpc set db=tree key="k \d+" in=\d+ out=\d+\n){3}$`, text)

	for line := range strings.Lines(watching(t, set, "monitor", "-n", "2", "-json", "-command", "get")) {
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &o))
		require.Equal(t, "other", o["key"])
		require.Equal(t, "get", o["command"])
		require.Equal(t, false, o["failed"], "a record that is not there is no failure")
		require.Greater(t, o["time"], 1.7e9)
	}
	require.Empty(t, watching(t, set, "monitor", "-time", "0.1", "-failed"))
}

func TestHotKeys(t *testing.T) {
	clear(t)
	request := func(n int) {
		command(t, "", at("get", fmt.Sprint("rare", n))...)
		command(t, "", at("getbulk", "hot", "warm")...)
		command(t, "", at("getbulk", "-bin", "hot")...)
	}
	text := watching(t, request, "hotkeys", "-time", "3", "-n", "2")
	require.Regexp(t, `^\d+\t:\thot\n\d+\t:\twarm\n\d+ requests in 3s.*\n$`, text)
	lines := strings.Split(watching(t, request, "hotkeys", "-time", "2", "-n", "1", "-json", "-prefix", "w", "-px"), "\n")
	require.Regexp(t, `^\{"count":\d+,"db":":","key":"7761726D","long":false,"over":0\}$`, lines[0])
	require.Regexp(t, `^\{"left_out":0,"requests":\d+,"seconds":2\}$`, lines[1])
	require.Contains(t, command(t, "", at("hotkeys", "-time", "61")...).stderr, "at most 60")
	require.Contains(t, command(t, "", at("hotkeys", "-db", "none")...).stderr, "no such database")
}

func TestWatchOptionsThatLetNothingThrough(t *testing.T) {
	for want, args := range map[string][]string{
		`-protocol: there is no "nonsense"; it is one of rpc, rest, binary`: {"monitor", "-protocol", "nonsense"},
		`-protocol: there is no "x"`:                                        {"hotkeys", "-protocol", "x"},
		"-every: must be at least 1":                                        {"monitor", "-every", "0"},
		"-time: must be more than 0; without it":                            {"monitor", "-time", "-1"},
		"-n: must be at least 1":                                            {"monitor", "-n", "0"},
		"-time: must be more than 0 and at most 60":                         {"hotkeys", "-time", "0"},
		"-n: is for -watch":                                                 {"stats", "-n", "3"},
		"-iv: is for -watch":                                                {"stats", "-iv", "3"},
		"-all: is for -watch":                                               {"stats", "-all"},
		"-n: must not be negative":                                          {"top", "-n", "-1"},
		`has no figure whose name begins with "nosuch"`:                     {"stats", "db_0", "nosuch"},
		`no figure whose name begins with "nosuch": ktremotem`:              {"stats", "-watch", "-n", "1", "nosuch"},
		"-n: must be a number of followers":                                 {"wait", "-n", "-4"},
		"-time: must not be negative":                                       {"wait", "-time", "-1"},
		"-parts: must be at least 1":                                        {"checksum", "-parts", "0"},
		"-wait: must not be negative":                                       {"compare", "-wait", "-1", "localhost"},
		"-rate: must not be negative":                                       {"bigkeys", "-rate", "-1"},
		"-bg begins a compaction, and -abort ends one":                      {"compact", "-bg", "-abort"},
		"-mport: must be 1 to 65535":                                        {"tunerepl", "-mport", "0", "localhost"},
		"-port: must be 1 to 65535":                                         {"get", "-port", "65536", "k"},
	} {
		r := command(t, "", at(args[0], args[1:]...)...)
		require.Equal(t, 1, r.exit, args)
		require.Contains(t, r.stderr, want)
		require.Empty(t, r.stdout)
	}
}
