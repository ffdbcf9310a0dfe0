package remote_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/klog"
	"gotycoon/server"
	"gotycoon/tools/remote"
)

// serveLogged runs a server with an update log and returns its port.
func serveLogged(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	listening, ended := make(chan net.Addr, 1), make(chan int, 1)
	cfg := server.DefaultConfig()
	cfg.Listening = func(a net.Addr) { listening <- a }
	cfg.Port, cfg.LogLevel, cfg.UpdateLog, cfg.ServerID = 0, klog.LevelSilent, t.TempDir(), 1
	go func() { ended <- server.Run(ctx, cfg, io.Discard, io.Discard) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	_, port, err := net.SplitHostPort((<-listening).String())
	require.NoError(t, err)
	return port
}

func TestWatch(t *testing.T) {
	port := serveLogged(t)
	require.Zero(t, command(t, "", "set", "-port", port, "-xt", "-4000000000", "tea", "green").exit)
	require.Zero(t, command(t, "", "set", "-port", port, "coffee", "black").exit)
	require.Zero(t, command(t, "", "remove", "-port", port, "tea").exit)
	require.Zero(t, command(t, "", "clear", "-port", port).exit)
	for _, run := range []struct{ args, want string }{
		{"-ts 0 t", `\d{19}\tset\ttea\tgreen\t4000000000\n\d{19}\tremove\ttea\n\d{19}\tclear\n`},
		{"-ts 0 -keys -px co", `\d{19}\tset\t63 6F 66 66 65 65\n\d{19}\tclear\n`},
		{"-ts 1 -json t", `{"key":"tea","op":"set","ts":\d{19},"value":"green","xt":4000000000}\n{"key":"tea","op":"remove","ts":\d{19}}\n{"op":"clear","ts":\d{19}}\n`},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var stdout, stderr output
		ended := make(chan int, 1)
		args := append([]string{"watch", "-port", port}, strings.Fields(run.args)...)
		go func() { ended <- remote.Main(ctx, args, strings.NewReader(""), &stdout, &stderr) }()
		require.Eventually(t, func() bool { return strings.Contains(stdout.String(), "clear") }, waitLimit, time.Millisecond, run.args)
		cancel()
		<-ended
		require.Regexp(t, "^"+run.want+"$", stdout.String())
	}
	r := command(t, "", at("watch")...)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "the server keeps no update log to watch")
	require.Equal(t, 1, command(t, "", "watch", "-ts", "x").exit)
}
