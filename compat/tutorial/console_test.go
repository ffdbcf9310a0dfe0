package tutorial

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// step is a command and its output, or a file to be written.
type step struct {
	cmd  string   // as a shell takes it
	out  []string // lines
	line int      // of the document

	file, text string // instead of a command
}

// parse finds the steps of a document (see the package comment).
func parse(document string) []step {
	var (
		steps []step
		fence string // what opened the fence that a line is in
		open  bool
	)
	for n, line := range strings.Split(document, "\n") {
		if info, ok := strings.CutPrefix(line, "```"); ok {
			open, fence = !open, info
			if name := fileName(fence); open && name != "" {
				steps = append(steps, step{file: name, line: n + 1})
			}
			continue
		}
		switch {
		case !open:
		case fence == "console":
			steps = addConsole(steps, line, n+1)
		case fileName(fence) != "":
			steps[len(steps)-1].text += line + "\n"
		}
	}
	return steps
}

// fileName is the second word behind the backquotes of a fence.
func fileName(fence string) string {
	if words := strings.Fields(fence); len(words) > 1 {
		return words[1]
	}
	return ""
}

func addConsole(steps []step, line string, n int) []step {
	last := len(steps) - 1
	cmd, isCommand := strings.CutPrefix(line, "$ ")
	switch {
	case isCommand:
		return append(steps, step{cmd: cmd, line: n})
	case last >= 0 && strings.HasSuffix(steps[last].cmd, "\\"):
		steps[last].cmd += "\n" + line
	case last >= 0:
		steps[last].out = append(steps[last].out, line)
	}
	return steps
}

func TestParse(t *testing.T) {
	steps := parse("# x\n\n```sh\n$ not run\n```\n\n```go a.go\npackage main\n```\n\n```console\n$ one \\\n  more\n$ two\n2\n...\n```\n")
	require.Equal(t, []step{
		{file: "a.go", text: "package main\n", line: 7},
		{cmd: "one \\\n  more", line: 12},
		{cmd: "two", line: 14, out: []string{"2", "..."}},
	}, steps)
}
