package servicetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Case is a recorded conversation. The fields are those of the steps below; byte strings are UTF-8.
type Case struct {
	Name        string   `json:"name"`
	Requires    []string `json:"requires"`
	Steps       []Step   `json:"steps"`
	ExportAfter *string  `json:"export_file_after"`
}

// Step is a request and its reply, or a pause.
type Step struct {
	Conn, Op, Sent, Body string
	Status, MS           int
	BodyRE               string  `json:"body_re"`
	Received             *string `json:"received"`
	EOF                  bool
}

// ReadCases reads a file of testdata with a conversation in each line. C is a Case, or the type for
// the conversations of a protocol that is no HTTP.
func ReadCases[C any](t *testing.T, file string) []C {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	var cases []C
	for line := range bytes.Lines(text) {
		var c C
		require.NoError(t, json.Unmarshal(line, &c))
		cases = append(cases, c)
	}
	return cases
}

// Replay plays a case against the server at addr.
func (c *Case) Replay(t *testing.T, addr string) {
	conns := map[string]*bufio.Reader{}
	sockets := map[string]net.Conn{}
	for i, step := range c.Steps {
		if step.Op == "sleep" {
			continue // the clock of the test is moved by its own rules
		}
		require.Empty(t, step.Op, "step %d", i)
		if conns[step.Conn] == nil {
			sockets[step.Conn] = Dial(t, addr)
			conns[step.Conn] = bufio.NewReader(sockets[step.Conn])
		}
		_, err := io.WriteString(sockets[step.Conn], step.Sent)
		require.NoError(t, err)
		step.check(t, i, conns[step.Conn])
	}
}

func (s *Step) check(t *testing.T, i int, r *bufio.Reader) {
	if s.Status != 0 {
		status, body := ReadReply(t, r)
		require.Equal(t, s.Status, status, "step %d: %s", i, s.Sent)
		if s.BodyRE != "" {
			require.Regexp(t, regexp.MustCompile(`\A(?:`+s.BodyRE+`)\z`), body, "step %d: %s", i, s.Sent)
		} else {
			require.Equal(t, s.Body, body, "step %d: %s", i, s.Sent)
		}
	}
	if s.EOF {
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Empty(t, rest)
	}
}
