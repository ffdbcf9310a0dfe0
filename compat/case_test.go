package compat

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// latin1 is recorded bytes: in the file each code point is one byte.
type latin1 string

func (b *latin1) UnmarshalJSON(p []byte) error {
	var s string
	if err := json.Unmarshal(p, &s); err != nil {
		return err
	}
	var out strings.Builder
	for _, r := range s {
		out.WriteByte(byte(r))
	}
	*b = latin1(out.String())
	return nil
}

// goldenCase is one recorded conversation.
type goldenCase struct {
	File    string `json:"-"` // directory and file without extension, for example http/12-rest
	Name    string
	Server  string // profile
	Setup   []goldenStep
	Steps   []goldenStep
	NoClear bool // the databases keep what earlier cases left
}

func (c *goldenCase) id() caseID { return caseID{c.File, c.Name} }

// caseID names a case: names repeat from file to file.
type caseID struct{ file, name string }

func (id caseID) String() string { return id.file + ": " + id.name }

// goldenStep is one action of a client, in the order in which fields are looked at.
type goldenStep struct {
	Op       string  // sleep, close, shut_wr, or empty
	MS       int     // sleep
	C        string  // connection, opened at its first use
	Send     *latin1 // bytes to write, if any
	Split    int     // write in pieces of this length
	GapMS    int     `json:"gap_ms"` // with this pause, default 5
	Recv     *latin1 // bytes expected back; absent: nothing is read at this step
	EOF      bool    // the server then closes the connection
	Status   int     // of the one HTTP response in Recv
	Statuses []int   // of several
	TookMS   int     `json:"took_ms"`
	Cmp      string  // mode of comparison
}

// responses is how many HTTP responses the step receives; 0 for other bytes.
func (s *goldenStep) responses() int {
	switch {
	case s.Statuses != nil:
		return len(s.Statuses)
	case s.Status != 0:
		return 1
	}
	return 0
}

// all returns set-up and steps.
func (c *goldenCase) all() []goldenStep {
	return append(c.Setup[:len(c.Setup):len(c.Setup)], c.Steps...)
}

// onTheSecond reports whether the case depends on the clock, so that it must begin early in a second.
func (c *goldenCase) onTheSecond() bool {
	for _, s := range c.all() {
		if s.Send != nil && (timeToken.MatchString(string(*s.Send)) || strings.Contains(string(*s.Send), "xt\t")) {
			return true
		}
		if s.Recv != nil && timeToken.MatchString(string(*s.Recv)) {
			return true
		}
	}
	return false
}

// waits reports whether some client waits for a signal.
func (c *goldenCase) waits() bool {
	for _, s := range c.all() {
		if s.Send != nil && strings.Contains(string(*s.Send), "WAIT") {
			return true
		}
	}
	return false
}

// loadCases returns the cases of all files of testdata, in the files' order, without the files
// whose names begin with 9.
func loadCases(t *testing.T) []goldenCase {
	t.Helper()
	names, err := filepath.Glob("testdata/*/[0-8]*.jsonl")
	require.NoError(t, err)
	var cases []goldenCase
	for _, name := range names {
		file := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(name), "testdata/"), ".jsonl")
		for _, c := range readLines[goldenCase](t, name) {
			c.File = file
			cases = append(cases, c)
		}
	}
	return cases
}

// readLines decodes a file with one JSON value a line.
func readLines[T any](t *testing.T, name string) []T {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	var all []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v T
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v), "%s, line %d", name, len(all)+1)
		all = append(all, v)
	}
	require.NoError(t, lines.Err())
	return all
}

// profile is a server as kt-servers.json describes it.
type profile struct {
	Args    []string
	DBs     []string
	Files   map[string]profileFile
	Prepare *struct { // a first run, which is stopped again
		Args     []string
		Requests []latin1
	}
}

// profileFile is a file of the working directory, or a directory where its name ends with a slash.
type profileFile struct {
	Text string
	Exec bool
}

func (f *profileFile) UnmarshalJSON(p []byte) error {
	if len(p) > 0 && p[0] == '"' {
		return json.Unmarshal(p, &f.Text)
	}
	type plain profileFile
	return json.Unmarshal(p, (*plain)(f))
}

func loadProfiles(t *testing.T) map[string]profile {
	t.Helper()
	data, err := os.ReadFile("testdata/kt-servers.json")
	require.NoError(t, err)
	var all map[string]profile
	require.NoError(t, json.Unmarshal(data, &all))
	return all
}
