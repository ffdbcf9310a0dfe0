package show

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress shows how far a long command is.
type Progress interface {
	// Done adds a number of items, and their bytes.
	Done(items, bytes int)
	// End ends the last line.
	End()
}

// ProgressOptions describe what is counted.
type ProgressOptions struct {
	Items  string // what is counted, for people: "records"
	Size   int64  // bytes of all items, for the bar; -1: not known
	Number int64  // of all items: the bar counts items, not bytes; 0: not known
	Every  int    // items per dot; 0 means 1
	Ending string // printed at the end of the dots; empty: their number, unless it was just printed
}

// NewProgress returns a bar on stderr if a person watches. Otherwise it returns the dots that
// scripts know from the original; they go to out, which is the buffer over stdout.
func NewProgress(out, stdout, stderr io.Writer, o ProgressOptions) Progress {
	if IsTerminal(stdout) && IsTerminal(stderr) {
		return newBar(stderr, o)
	}
	return &dots{out: out, every: max(1, o.Every), ending: o.Ending}
}

// IsTerminal reports whether w is a terminal, so that a person reads the output.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// dots prints a dot for every so many items, and their number now and then, as the original does.
type dots struct {
	out    io.Writer
	every  int
	ending string
	n      int
}

const dotsPerRow = 50

// Done prints dots. The owner of the writer flushes it and handles its error.
func (d *dots) Done(items, _ int) {
	for range items {
		d.n++
		if d.n%d.every != 0 {
			continue
		}
		fmt.Fprint(d.out, ".")
		if d.n%(d.every*dotsPerRow) == 0 {
			fmt.Fprintf(d.out, " (%d)\n", d.n)
		}
	}
}

// End ends the line of dots.
func (d *dots) End() {
	switch {
	case d.ending != "":
		fmt.Fprintf(d.out, "%s\n", d.ending)
	case d.n%(d.every*dotsPerRow) != 0:
		fmt.Fprintf(d.out, " (%d)\n", d.n)
	}
}

// bar shows items, items per second, and the remaining time if the total size is known.
type bar struct {
	out   io.Writer
	bar   *progressbar.ProgressBar
	begin time.Time
	what  string
	count bool // items are counted, not bytes
	items int
}

func newBar(out io.Writer, o ProgressOptions) *bar {
	count, most := o.Number > 0, o.Size
	if count {
		most = o.Number
	}
	return &bar{out: out, begin: time.Now(), what: o.Items, count: count, bar: progressbar.NewOptions64(most,
		progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(30), progressbar.OptionSetPredictTime(true),
		progressbar.OptionShowBytes(!count), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())}
}

// Done moves the bar. An error of drawing it is dropped: it must not end the command.
func (b *bar) Done(items, bytes int) {
	b.items += items
	b.bar.Describe(b.text())
	step := bytes
	if b.count {
		step = items
	}
	_ = b.bar.Add(step)
}

func (b *bar) text() string {
	rate := float64(b.items) / max(time.Since(b.begin).Seconds(), 1e-3)
	return fmt.Sprintf("%d %s, %.0f/s", b.items, b.what, rate)
}

// End removes the bar and leaves the figures.
func (b *bar) End() {
	_ = b.bar.Finish()
	fmt.Fprintf(b.out, "%s\n", b.text())
}

// Style highlights parts of a text. The zero value highlights nothing.
type Style struct{ colours bool }

// NewStyle returns the style for an output. Nothing is highlighted if the output is no terminal, or
// if the variable NO_COLOR is set.
func NewStyle(w io.Writer) Style {
	return Style{colours: IsTerminal(w) && os.Getenv("NO_COLOR") == ""}
}

// Bold is for headings and the most important facts.
func (s Style) Bold(text string) string { return s.wrap("1", text) }

// Dim is for labels.
func (s Style) Dim(text string) string { return s.wrap("2", text) }

// Accent is for charts.
func (s Style) Accent(text string) string { return s.wrap("36", text) }

func (s Style) wrap(code, text string) string {
	if !s.colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
