package remote

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far an import is.
type progress interface {
	done(lines, bytes int) // so many more lines, with so many bytes, have been answered
	end()
}

// newProgress returns a bar for a terminal, and otherwise the dots that scripts know. size is that of the input in bytes,
// -1 where it is not known.
func newProgress(c *call, size int64) progress {
	if isTerminal(c.stdout) && isTerminal(c.stderr) {
		return newBar(c.stderr, size)
	}
	return &dots{out: c.out}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// dots prints a dot per line and the number of lines now and then, as the original does.
type dots struct {
	out io.Writer
	n   int
}

const dotsPerRow = 50

// done prints dots. The writer is flushed, and its error looked at, after each batch.
func (d *dots) done(lines, _ int) {
	for range lines {
		d.n++
		fmt.Fprint(d.out, ".")
		if d.n%dotsPerRow == 0 {
			fmt.Fprintf(d.out, " (%d)\n", d.n)
		}
	}
}

func (d *dots) end() {
	if d.n%dotsPerRow != 0 {
		fmt.Fprintf(d.out, " (%d)\n", d.n)
	}
}

// bar shows records, records per second, and the time left as far as the size of the input is known.
type bar struct {
	out     io.Writer
	bar     *progressbar.ProgressBar
	begin   time.Time
	records int
}

func newBar(out io.Writer, size int64) *bar {
	return &bar{out: out, begin: time.Now(), bar: progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(30), progressbar.OptionSetPredictTime(true),
		progressbar.OptionShowBytes(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())}
}

// done moves the bar. One that cannot be drawn must not end the import.
func (b *bar) done(lines, bytes int) {
	b.records += lines
	b.bar.Describe(fmt.Sprintf("%d records, %.0f/s", b.records, b.rate()))
	_ = b.bar.Add(bytes)
}

func (b *bar) rate() float64 { return float64(b.records) / max(time.Since(b.begin).Seconds(), 1e-3) }

func (b *bar) end() {
	_ = b.bar.Finish()
	fmt.Fprintf(b.out, "%d records, %.0f/s\n", b.records, b.rate())
}
