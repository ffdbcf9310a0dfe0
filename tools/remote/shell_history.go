package remote

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// keepHistory is the number of lines that a new shell takes from the file of history.
const keepHistory = 1000

// lineHistory is the lines that were typed into the shell, the oldest first. All of them can be
// called back in this run. The file, for later runs, has no line that may have a secret in it: see
// private. It implements term.History.
type lineHistory struct {
	lines []string
	file  *os.File // nil: the lines are not kept
}

// statePath returns the path of the file of history: below $XDG_STATE_HOME, which is
// ~/.local/state where it is not set (XDG Base Directory Specification).
func statePath() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) { // the specification: others are to be ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("where to keep the history of the shell: %w", err)
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, program, "history"), nil
}

// openHistory reads the file of history, and makes it if there is none.
func openHistory() (*lineHistory, error) {
	path, err := statePath()
	if err != nil {
		return new(lineHistory), err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return new(lineHistory), fmt.Errorf("the history of the shell is not kept: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return new(lineHistory), fmt.Errorf("the history of the shell is not kept: %w", err)
	}
	h := &lineHistory{file: f}
	for in := bufio.NewScanner(f); in.Scan(); {
		h.lines = append(h.lines, in.Text())
	}
	if len(h.lines) > 2*keepHistory {
		h.lines = slices.Clone(h.lines[len(h.lines)-keepHistory:])
		return h, h.shorten()
	}
	return h, nil
}

// shorten leaves the lines that are kept in the file. A shell that runs at the same time may lose a
// line by that, and nothing else.
func (h *lineHistory) shorten() error {
	err := h.file.Truncate(0)
	if err == nil {
		_, err = h.file.WriteString(strings.Join(h.lines, "\n") + "\n")
	}
	if err != nil {
		return fmt.Errorf("shortening the history of the shell: %w", err)
	}
	return nil
}

// Add implements term.History. A line that cannot be written is not kept: that must not disturb who
// types.
func (h *lineHistory) Add(line string) {
	line = strings.TrimRight(line, " \t")
	if line == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if h.file != nil && !private(line) {
		_, _ = h.file.WriteString(line + "\n")
	}
}

// Len implements term.History.
func (h *lineHistory) Len() int { return len(h.lines) }

// At implements term.History: 0 is the newest line.
func (h *lineHistory) At(i int) string { return h.lines[len(h.lines)-1-i] }

func (h *lineHistory) close() error {
	if h.file == nil {
		return nil
	}
	if err := h.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// storing is the commands whose lines have values, which may be passwords of somebody's users.
var storing = []string{"set", "setbulk", "script"}

// private reports whether a line may have a secret in it: a value, or anything behind a blank, with
// which whoever types says so, as in other shells. Passwords and tokens of the server itself are
// never typed: options take only the names of files with them.
func private(line string) bool {
	words := wordsOf(line)
	return line[0] == ' ' || line[0] == '\t' || len(words) == 0 || slices.Contains(storing, words[0].text)
}
