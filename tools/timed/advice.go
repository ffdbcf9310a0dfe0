package timed

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"gotycoon/tools/show"
)

// advised adds a line to the errors of the original that give no reason, or do not say what to do.
// Scripts know the line of the original, so it stays as it is.
func advised(err error) error {
	if err == nil {
		return nil
	}
	remedy := remedyOf(err)
	if remedy == "" {
		return err
	}
	return fmt.Errorf("%w\n%s: %s", err, program, remedy)
}

func remedyOf(err error) string {
	if file, ok := errors.AsType[*show.OpenError](err); ok {
		return file.Err.Error()
	}
	call, ok := errors.AsType[*callError](err)
	if !ok || call.name != "DB::open" {
		return ""
	}
	text := call.Error()
	switch path, isPath := errors.AsType[*fs.PathError](err); {
	case isPath && errors.Is(err, fs.ErrNotExist):
		return path.Path + ": there is no such file or directory; create makes a database in a directory that is there"
	case strings.HasSuffix(text, "unknown database type"):
		return "the name of a database file ends in .kct, .kch, .kcd or .kcf"
	case strings.HasSuffix(text, "invalid database"):
		return "verify tells what is wrong with the file, and repair saves what can be read of it"
	}
	return ""
}
