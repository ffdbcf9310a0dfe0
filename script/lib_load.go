package script

import (
	"errors"
	"io"
	"os"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// pushChunk pushes a compiled chunk, or nil and what is wrong with it.
func (s *state) pushChunk(l *lua.LState, source, name string) int {
	f, err := s.load(source, name)
	if err != nil {
		l.Push(lua.LNil)
		l.Push(lua.LString(err.Error()))
		return 2
	}
	l.Push(f)
	return 1
}

func (s *state) baseLoadString(l *lua.LState) int {
	source := s.checkText(l, 1)
	return s.pushChunk(l, source, l.OptString(2, source))
}

func (s *state) baseLoad(l *lua.LState) int {
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
			return s.pushChunk(l, source.String(), l.OptString(2, "=(load)"))
		case !ok:
			l.Push(lua.LNil)
			l.Push(lua.LString("reader function must return a string"))
			return 2
		}
		source.WriteString(piece)
		s.allow(l, float64(source.Len()))
	}
}

// readChunk reads a file for loadfile, dofile and require, of which there may be no end. Its first line is left out when it begins with #.
func (s *state) readChunk(l *lua.LState, path string) (source string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var text strings.Builder
	for size := int64(readPiece); size == readPiece; {
		s.allow(l, float64(text.Len()+readPiece))
		if size, err = io.CopyN(&text, f, readPiece); err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		s.leash.check(l)
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

func (s *state) baseLoadFile(l *lua.LState) int {
	path := s.checkText(l, 1)
	source, err := s.readChunk(l, path)
	if err != nil {
		l.Push(lua.LNil)
		l.Push(lua.LString("cannot open " + path))
		return 2
	}
	return s.pushChunk(l, source, "@"+path)
}

func (s *state) baseDoFile(l *lua.LState) int {
	top := l.GetTop()
	if s.baseLoadFile(l) == 2 {
		l.Error(l.Get(-1), 0)
	}
	l.Call(0, lua.MultRet)
	return l.GetTop() - top
}

// searchModule is the searcher of require for modules written in the language.
func (s *state) searchModule(l *lua.LState) int {
	name := s.checkText(l, 1)
	paths, ok := l.GetField(l.GetGlobal("package"), "path").(lua.LString)
	if !ok {
		l.RaiseError("'package.path' must be a string")
	}
	var missing strings.Builder
	for pattern := range strings.SplitSeq(string(paths), ";") {
		path := strings.ReplaceAll(pattern, "?", strings.ReplaceAll(name, ".", "/"))
		source, err := s.readChunk(l, path)
		if err != nil {
			missing.WriteString("\n\tno file '" + path + "'")
			continue
		}
		f, err := s.load(source, "@"+path)
		if err != nil {
			l.RaiseError("error loading module '%s' from file '%s':\n\t%s", name, path, err)
		}
		l.Push(f)
		return 1
	}
	return s.pushText(l, missing.String())
}
