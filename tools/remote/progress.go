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
	line(size int) // a line of so many bytes was read
	stored(n int)  // so many records were acknowledged
	end()
}

// newProgress returns a bar for a terminal, and otherwise the dots that scripts know.
func newProgress(c *call, size int64) progress {
	f, ok := c.term.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &dots{out: c.out}
	}
	if size == 0 {
		size = -1 // not known
	}
	return &bar{begin: time.Now(), bar: progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetDescription("import"))}
}

// dots prints a dot per line and the number of lines now and then, as the original does.
type dots struct {
	out io.Writer
	n   int
}

const dotsPerRow = 50

func (d *dots) line(int) {
	d.n++
	fmt.Fprint(d.out, ".") // the writer is flushed, and looked at, in the end
	if d.n%dotsPerRow == 0 {
		fmt.Fprintf(d.out, " (%d)\n", d.n)
	}
}

func (d *dots) stored(int) {}

func (d *dots) end() {
	if d.n%dotsPerRow != 0 {
		fmt.Fprintf(d.out, " (%d)\n", d.n)
	}
}

// bar shows bytes read, records per second and the time left.
type bar struct {
	bar     *progressbar.ProgressBar
	begin   time.Time
	records int
}

func (b *bar) line(size int) { _ = b.bar.Add(size) } // a bar that cannot be drawn must not end the import

func (b *bar) stored(n int) {
	b.records += n
	b.bar.Describe(fmt.Sprintf("%d records, %.0f/s", b.records, float64(b.records)/time.Since(b.begin).Seconds()))
}

func (b *bar) end() {
	_ = b.bar.Finish()
	fmt.Fprintf(os.Stderr, "%d records in %.1f s\n", b.records, time.Since(b.begin).Seconds())
}
