package show

import (
	"io"
	"os"
)

// Style makes parts of a text stand out. The zero value leaves them as they are.
type Style struct{ colours bool }

// NewStyle returns the style for an output: plain unless it is a terminal, and where the variable NO_COLOR is set.
func NewStyle(w io.Writer) Style {
	return Style{colours: IsTerminal(w) && os.Getenv("NO_COLOR") == ""}
}

// Bold is for headings and what matters most.
func (s Style) Bold(text string) string { return s.wrap("1", text) }

// Dim is for what explains.
func (s Style) Dim(text string) string { return s.wrap("2", text) }

// Alert is for what is wrong.
func (s Style) Alert(text string) string { return s.wrap("31", text) }

// Accent is for charts.
func (s Style) Accent(text string) string { return s.wrap("36", text) }

func (s Style) wrap(code, text string) string {
	if !s.colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
