package script

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// concatName is the local variable of every chunk that holds the function which concatenations become: the interpreter's own
// operator writes numbers another way. No script can name it, or the key under which a number gives it away.
const (
	concatName = "(concat)"
	concatKey  = "\x00concat"
)

// chunkName is how messages name a chunk, given the name that load functions are given: behind = or @ as it is, otherwise it
// is taken for the text.
func chunkName(name string) string {
	const longest = 60
	if rest, ok := strings.CutPrefix(name, "="); ok {
		return rest[:min(len(rest), longest-1)]
	}
	if rest, ok := strings.CutPrefix(name, "@"); ok {
		if len(rest) > longest-8 {
			rest = "..." + rest[len(rest)-(longest-8):]
		}
		return rest
	}
	const room = longest - 17 // for the words around it
	line, _, more := strings.Cut(strings.ReplaceAll(name, "\r", "\n"), "\n")
	if more || len(line) > room {
		line = line[:min(len(line), room)] + "..."
	}
	return `[string "` + line + `"]`
}

// load compiles source. The message of an error has name and line in front, as those of the reference interpreter.
func (s *state) load(source, name string) (*lua.LFunction, error) {
	name = chunkName(name)
	if strings.HasPrefix(source, "\x1b") {
		return nil, errors.New(name + ": bad header in precompiled chunk")
	}
	chunk, err := parse.Parse(strings.NewReader(source), name)
	if err != nil {
		return nil, syntaxError(err, source, name)
	}
	if wrong, at := strict(source); wrong != "" {
		return nil, errorNear(source[:at], name, "syntax error", wrong)
	}
	r := rewriter{}
	chunk, err = r.chunk(chunk)
	if err != nil {
		return nil, errors.New(name + ":1: " + err.Error())
	}
	if s.serving && r.lookups > maxLookups {
		return nil, errors.New(name + ":1: function has too many constants to be loaded within a call")
	}
	proto, err := lua.Compile(chunk, name)
	if err != nil {
		return nil, syntaxError(err, source, name)
	}
	return s.l.NewFunctionFromProto(proto), nil
}

// syntaxError returns an error of the parser or the compiler with the name of the chunk and the line in front.
func syntaxError(err error, source, name string) error {
	if e, ok := errors.AsType[*parse.Error](err); ok {
		if e.Pos.Line == parse.EOF {
			return errorNear(source, name, e.Message, "<eof>")
		}
		return fmt.Errorf("%s:%d: %s near '%s'", name, e.Pos.Line, e.Message, e.Token)
	}
	if e, ok := errors.AsType[*lua.CompileError](err); ok {
		return fmt.Errorf("%s:%d: %s", name, e.Line, e.Message)
	}
	return errors.New(name + ":1: " + err.Error())
}

// errorNear returns an error about a token and the text of the chunk before it.
func errorNear(before, name, message, token string) error {
	return fmt.Errorf("%s:%d: %s near '%s'", name, 1+strings.Count(before, "\n"), message, token)
}
