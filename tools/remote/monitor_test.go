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
	text := watching(t, request, "hotkeys", "-time", "0.3", "-n", "2")
	require.Regexp(t, `^\d+\t:\thot\n\d+\t:\twarm\n\d+ requests in 300ms.*\n$`, text)
	lines := strings.Split(watching(t, request, "hotkeys", "-time", "0.1", "-n", "1", "-json", "-prefix", "w", "-px"), "\n")
	require.Regexp(t, `^\{"count":\d+,"db":":","key":"7761726D","long":false,"over":0\}$`, lines[0])
	require.Regexp(t, `^\{"left_out":0,"requests":\d+,"seconds":0.1\}$`, lines[1])
	require.Contains(t, command(t, "", at("hotkeys", "-time", "61")...).stderr, "at most 60")
	require.Contains(t, command(t, "", at("hotkeys", "-db", "none")...).stderr, "no such database")
}
