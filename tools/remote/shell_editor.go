package remote

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// editor reads lines that a person types at a terminal. The editing is that of golang.org/x/term,
// which the module needs anyway and which brings nothing else in: liner and the forks of readline
// would add a search of the history (Ctrl-R) and two to four modules.
type editor struct {
	keys     *os.File // nil in tests: the terminal's mode stays as it is
	terminal *term.Terminal
	out      io.Writer
	complete func(text string) (longer string, choices []string)
}

// newEditor returns an editor. complete is given a line up to the cursor, and returns it completed,
// with the choices where it cannot be completed further.
func newEditor(keys *os.File, out io.Writer, past term.History, complete func(string) (string, []string)) *editor {
	e := &editor{keys: keys, out: out, complete: complete}
	e.attach(keys, past)
	return e
}

// attach makes the terminal read from in.
func (e *editor) attach(in io.Reader, past term.History) {
	e.terminal = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&clearing{in: in}, e.out}, "")
	e.terminal.History = past
	e.terminal.AutoCompleteCallback = e.pressed
}

// read reads a line. The terminal is raw only meanwhile, so that the commands of the shell find it
// as they would find it outside, and Ctrl-C ends them.
func (e *editor) read(prompt string) (string, error) {
	if e.keys != nil {
		state, err := term.MakeRaw(int(e.keys.Fd()))
		if err != nil {
			return "", fmt.Errorf("preparing the terminal: %w", err)
		}
		defer func() { _ = term.Restore(int(e.keys.Fd()), state) }() // there is nothing else to try
		// A serial line, and some containers, have a terminal that does not know its size.
		if width, height, err := term.GetSize(int(e.keys.Fd())); err == nil && width > 0 && height > 0 {
			_ = e.terminal.SetSize(width, height) // it never fails
		}
	}
	e.terminal.SetPrompt(prompt)
	return e.terminal.ReadLine()
}

// pressed completes the line when the key is Tab. It implements term.Terminal.AutoCompleteCallback.
func (e *editor) pressed(line string, at int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	longer, choices := e.complete(line[:at])
	if len(choices) > 1 && longer == line[:at] {
		fmt.Fprintf(e.terminal, "%s\n", strings.Join(choices, "  "))
	}
	return longer + line[at:], len(longer), true
}

// clearing makes Ctrl-C clear the line: term.Terminal would take it for the end of the input.
type clearing struct {
	in   io.Reader
	left []byte // read, and not yet handed on
}

const (
	ctrlC     = "\x03"
	clearLine = "\x05\x15" // Ctrl-E, Ctrl-U: to the end, erase to the beginning
)

// Read hands the keys on.
func (c *clearing) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		n, err := c.in.Read(p)
		if err != nil {
			return 0, err
		}
		c.left = bytes.ReplaceAll(p[:n], []byte(ctrlC), []byte(clearLine))
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}
