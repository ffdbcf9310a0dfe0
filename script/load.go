package script

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// chunkName returns the name of a chunk in messages. A name behind = or @ stays as it is; any other
// name is the text of the chunk, whose first line is shown.
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
	const room = longest - 17 // the rest is for [string "..."]
	line, _, more := strings.Cut(strings.ReplaceAll(name, "\r", "\n"), "\n")
	if more || len(line) > room {
		line = line[:min(len(line), room)] + "..."
	}
	return `[string "` + line + `"]`
}

// loader compiles chunks: the script itself, and the chunks that functions such as loadstring load.
type loader struct {
	budget
	l       *lua.LState
	serving bool // a call is being served, and not the script being loaded
}

// readScript reads a script up to its first NUL.
func readScript(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the script: %w", err)
	}
	source, _, _ := strings.Cut(string(data), "\x00")
	return source, nil
}

// Check returns what is wrong with the text of a script, with the line; nil: it can be run.
func Check(path string) error {
	source, err := readScript(path)
	if err == nil {
		_, err = compile(source, "@"+path, false)
	}
	return err
}

// load compiles source. The message of an error begins with name and line.
func (lo *loader) load(source, name string) (*lua.LFunction, error) {
	proto, err := compile(source, name, lo.serving)
	if err != nil {
		return nil, err
	}
	return lo.l.NewFunctionFromProto(proto), nil
}

// compile is load without an interpreter.
func compile(source, name string, serving bool) (*lua.FunctionProto, error) {
	name = chunkName(name)
	if strings.HasPrefix(source, "\x1b") {
		return nil, errors.New(name + ": bad header in precompiled chunk")
	}
	switch deep, wrong, at := tooDeep(source); {
	case deep:
		return nil, errors.New(name + ":1: " + errDeep.Error())
	case wrong != "":
		return nil, errorNear(source[:at], name, "malformed number", wrong)
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
	if serving && r.lookups > maxLookups {
		return nil, errors.New(name + ":1: function has too many constants to be loaded within a call")
	}
	proto, err := lua.Compile(chunk, name)
	if err != nil {
		return nil, syntaxError(err, source, name)
	}
	return proto, nil
}

// syntaxError returns an error of the parser or the compiler, with name and line in front.
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

// pushChunk pushes a compiled chunk, or nil and the error.
func (lo *loader) pushChunk(l *lua.LState, source, name string) int {
	f, err := lo.load(source, name)
	if err != nil {
		l.Push(lua.LNil)
		l.Push(lua.LString(err.Error()))
		return 2
	}
	l.Push(f)
	return 1
}

func (lo *loader) loadString(l *lua.LState) int {
	source := checkText(l, 1)
	return lo.pushChunk(l, source, l.OptString(2, source))
}

func (lo *loader) loadFrom(l *lua.LState) int {
	reader := l.CheckFunction(1)
	var source strings.Builder
	for {
		l.Push(reader)
		l.Call(0, 1)
		piece, ok := text(l.Get(-1))
		empty := l.Get(-1) == lua.LNil || piece == ""
		l.Pop(1)
		switch {
		case empty && (ok || piece == ""):
			return lo.pushChunk(l, source.String(), l.OptString(2, "=(load)"))
		case !ok:
			l.Push(lua.LNil)
			l.Push(lua.LString("reader function must return a string"))
			return 2
		}
		source.WriteString(piece)
		lo.allow(l, float64(source.Len()))
	}
}

// readChunk reads a file for loadfile, dofile and require. The file may have no end, so each piece
// asks for room. A first line that begins with # is left out.
func (lo *loader) readChunk(l *lua.LState, path string) (source string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var text strings.Builder
	for size := int64(readPiece); size == readPiece; {
		lo.allow(l, float64(text.Len()+readPiece))
		if size, err = io.CopyN(&text, f, readPiece); err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		lo.leash.check(l)
	}
	source = text.String()
	if strings.HasPrefix(source, "#") {
		if end := strings.IndexByte(source, '\n'); end >= 0 {
			return source[end:], nil
		}
		return "", nil
	}
	return source, nil
}

func (lo *loader) loadFile(l *lua.LState) int {
	path := checkText(l, 1)
	source, err := lo.readChunk(l, path)
	if err != nil {
		l.Push(lua.LNil)
		l.Push(lua.LString("cannot open " + path))
		return 2
	}
	return lo.pushChunk(l, source, "@"+path)
}

func (lo *loader) doFile(l *lua.LState) int {
	top := l.GetTop()
	if lo.loadFile(l) == 2 {
		l.Error(l.Get(-1), 0)
	}
	l.Call(0, lua.MultRet)
	return l.GetTop() - top
}

// searchModule is the searcher of require for modules in Lua.
func (lo *loader) searchModule(l *lua.LState) int {
	name := checkText(l, 1)
	paths, ok := l.GetField(l.GetGlobal("package"), "path").(lua.LString)
	if !ok {
		l.RaiseError("'package.path' must be a string")
	}
	var missing strings.Builder
	for pattern := range strings.SplitSeq(string(paths), ";") {
		path := strings.ReplaceAll(pattern, "?", strings.ReplaceAll(name, ".", "/"))
		source, err := lo.readChunk(l, path)
		if err != nil {
			missing.WriteString("\n\tno file '" + path + "'")
			continue
		}
		f, err := lo.load(source, "@"+path)
		if err != nil {
			l.RaiseError("error loading module '%s' from file '%s':\n\t%s", name, path, err)
		}
		l.Push(f)
		return 1
	}
	return pushText(l, missing.String())
}
