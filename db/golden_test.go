package db

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goldenCase is a recorded conversation with the original server.
type goldenCase struct {
	Name   string
	Server string
	Setup  []goldenStep
	Steps  []goldenStep
}

// goldenStep is a request and its answer; each character is one byte.
type goldenStep struct{ Send, Recv string }

// mustReadGolden returns the cases of a file of recordings.
func mustReadGolden(t *testing.T, name string) (cases []goldenCase) {
	t.Helper()
	f, err := os.Open(filepath.Join("../compat/testdata", name))
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c goldenCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		cases = append(cases, c)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, cases)
	return cases
}

// procedure returns the name of the procedure called, "" for other requests.
func (s goldenStep) procedure() string {
	target, _, _ := strings.Cut(s.Send[strings.Index(s.Send, " ")+1:], " ")
	name, found := strings.CutPrefix(target, "/rpc/")
	if !found {
		return ""
	}
	return name
}

// inputs and outputs return the rows of the request and of the answer.
func (s goldenStep) inputs(t *testing.T) map[string]string  { return rowsOf(t, s.Send) }
func (s goldenStep) outputs(t *testing.T) map[string]string { return rowsOf(t, s.Recv) }

func rowsOf(t *testing.T, message string) map[string]string {
	t.Helper()
	head, body, _ := strings.Cut(message, "\r\n\r\n")
	rows := map[string]string{}
	for line := range strings.Lines(body) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case strings.Contains(head, "colenc=B"):
			key, value = fromBase64(t, key), fromBase64(t, value)
		case strings.Contains(head, "colenc=U"):
			key, value = fromURL(t, key), fromURL(t, value)
		}
		rows[latin1(key)] = latin1(value)
	}
	return rows
}

func fromBase64(t *testing.T, s string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	require.NoError(t, err)
	return characters(string(b))
}

func fromURL(t *testing.T, s string) string {
	t.Helper()
	s, err := url.PathUnescape(s)
	require.NoError(t, err)
	return characters(s)
}

// characters turns each byte into the character of that number.
func characters(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// latin1 is the inverse of characters.
func latin1(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteByte(byte(r))
	}
	return b.String()
}
