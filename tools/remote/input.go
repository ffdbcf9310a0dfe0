package remote

import (
	"io"

	"gotycoon/tools/show"
)

const importBuffer = 256 << 10

// input opens the file of the argument, or standard input. size is -1 where it is not known.
func (c *call) input() (in io.ReadCloser, size int64, err error) {
	if c.flags.NArg() == 0 {
		return io.NopCloser(c.stdin), -1, nil
	}
	return show.OpenInput(c.flags.Arg(0)) // not from args: a file's name is never hexadecimal
}

// inputName names the input in messages.
func (c *call) inputName() string {
	if c.flags.NArg() == 0 {
		return "standard input"
	}
	return c.flags.Arg(0)
}
