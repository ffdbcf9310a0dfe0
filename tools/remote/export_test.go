package remote

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// CompletingShell returns the completion of a shell at a server, for tests outside of the package.
func CompletingShell(t *testing.T, port string) func(line string) (string, []string) {
	t.Helper()
	c := newCall("shell", []string{"-port", port}, strings.NewReader(""), io.Discard, io.Discard)
	require.NoError(t, c.parse(0, 0))
	c.client = client.New("localhost:"+port, client.Options{})
	t.Cleanup(func() { _ = c.client.Close() })
	s := &shell{call: c, program: ktremotemgr(), options: map[string][]string{}}
	return func(line string) (string, []string) { return s.complete(t.Context(), line) }
}
