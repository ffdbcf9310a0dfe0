package remote

import (
	"io"

	"gotycoon/tools/show"
)

// input opens the file, or standard input. size is -1 where it is not known.
func (c *call) input() (in io.ReadCloser, size int64, err error) {
	if c.flags.NArg() == 0 {
		return io.NopCloser(c.stdin), -1, nil
	}
	return show.OpenInput(c.flags.Arg(0)) // not from args: a file's name is never hexadecimal
}

// inputName is the input as messages name it.
func (c *call) inputName() string {
	if c.flags.NArg() == 0 {
		return "standard input"
	}
	return c.flags.Arg(0)
}

// progress shows how far an import of size bytes is.
func (c *call) progress(size int64) show.Progress {
	return show.NewProgress(c.out, c.stdout, c.stderr, show.ProgressOptions{Items: "records", Size: size})
}
