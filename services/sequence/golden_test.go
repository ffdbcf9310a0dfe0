package sequence

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// goldenCase is a recorded conversation. The fields are those of the steps below; byte strings are UTF-8.
type goldenCase struct {
	Name        string       `json:"name"`
	Requires    []string     `json:"requires"`
	Steps       []goldenStep `json:"steps"`
	ExportAfter *string      `json:"export_file_after"`
}

type goldenStep struct {
	Conn, Op, Sent, Body string
	Status, MS           int
	BodyRE               string  `json:"body_re"`
	Received             *string `json:"received"`
	EOF                  bool
}

func readGolden(t *testing.T, file string) []goldenCase {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	var cases []goldenCase
	for line := range bytes.Lines(text) {
		var c goldenCase
		require.NoError(t, json.Unmarshal(line, &c))
		cases = append(cases, c)
	}
	return cases
}

// replay plays a case against the server at addr.
func (c *goldenCase) replay(t *testing.T, addr string) {
	conns := map[string]*bufio.Reader{}
	sockets := map[string]net.Conn{}
	for i, step := range c.Steps {
		if step.Op == "sleep" {
			continue // the clock of the test is moved by its own rules
		}
		require.Empty(t, step.Op, "step %d", i)
		if conns[step.Conn] == nil {
			sockets[step.Conn] = dial(t, addr)
			conns[step.Conn] = bufio.NewReader(sockets[step.Conn])
		}
		_, err := io.WriteString(sockets[step.Conn], step.Sent)
		require.NoError(t, err)
		step.check(t, i, conns[step.Conn])
	}
}

func (s *goldenStep) check(t *testing.T, i int, r *bufio.Reader) {
	if s.Status != 0 {
		status, body := readReply(t, r)
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

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c
}

// readReply reads one reply and requires it to have exactly the original's headers.
func readReply(t *testing.T, r *bufio.Reader) (status int, body string) {
	t.Helper()
	line, err := textproto.NewReader(r).ReadLine()
	require.NoError(t, err)
	words := strings.SplitN(line, " ", 3)
	require.Len(t, words, 3, line)
	status, err = strconv.Atoi(words[1])
	require.NoError(t, err)
	size := -1
	for {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		line = strings.TrimSuffix(line, "\r\n")
		if line == "" {
			break
		}
		if value, ok := strings.CutPrefix(line, "Content-length: "); ok {
			size, err = strconv.Atoi(value)
			require.NoError(t, err)
			continue
		}
		require.Equal(t, "Connection: keep-alive", line)
	}
	text := make([]byte, size)
	_, err = io.ReadFull(r, text)
	require.NoError(t, err)
	return status, string(text)
}

func TestSequenceConversations(t *testing.T) {
	cases := readGolden(t, "sequence.jsonl")
	addr := startSequence(t, SequenceOptions{Reserve: 2, ServerNo: 1, Location: time.UTC})
	played := 0
	for _, c := range cases {
		if slices.Contains(c.Requires, "copy-bugs") {
			continue
		}
		at := addr
		if slices.Contains(c.Requires, "fresh") {
			at = startSequence(t, SequenceOptions{Reserve: 2, ServerNo: 1, Location: time.UTC})
		}
		t.Run(c.Name, func(t *testing.T) { c.replay(t, at) })
		played++
	}
	require.Equal(t, 10, played)
}

func TestQuotaConversations(t *testing.T) {
	played := 0
	for _, c := range readGolden(t, "quota.jsonl") {
		if slices.Contains(c.Requires, "copy-bugs") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			export := filepath.Join(t.TempDir(), "journals")
			c.replay(t, startQuota(t, QuotaOptions{Limit: 1000, Export: export}))
			if c.ExportAfter != nil {
				require.Eventually(t, func() bool {
					text, err := os.ReadFile(export)
					return err == nil && string(text) == *c.ExportAfter
				}, 10*time.Second, time.Millisecond)
			}
		})
		played++
	}
	require.Equal(t, 8, played)
}
