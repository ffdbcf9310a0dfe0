package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../.." // of the module
	module = "gotycoon/"
)

// pkg is a directory with Go files.
type pkg struct {
	path  string  // relative to the module
	code  []*file // without tests
	tests []*file
}

// file is one parsed source file.
type file struct {
	*ast.File
	path  string
	lines [][]byte
	fset  *token.FileSet
}

// at is the place of a node as an editor understands it.
func (f *file) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(n.Pos()).Line)
}

// line returns the text of a line, counted from 1; "" outside the file.
func (f *file) line(n int) string {
	if n < 1 || n > len(f.lines) {
		return ""
	}
	return string(f.lines[n-1])
}

// imports are the packages of this module that the file imports.
func (f *file) imports() []string {
	var paths []string
	for _, spec := range f.Imports {
		if path, ours := strings.CutPrefix(unquote(spec.Path.Value), module); ours {
			paths = append(paths, path)
		}
	}
	return paths
}

func unquote(s string) string {
	text, err := strconv.Unquote(s)
	if err != nil {
		return s
	}
	return text
}

// load returns the whole module, which nobody changes.
func load(t *testing.T) []*pkg {
	t.Helper()
	all, err := parseAll()
	require.NoError(t, err)
	require.Greater(t, len(all), 5, "the module was not found")
	return all
}

// parseAll parses the whole module, the first time that it is called.
var parseAll = sync.OnceValues(func() ([]*pkg, error) {
	byPath := map[string]*pkg{}
	var all []*pkg
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && ignored(path, d.Name()) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parse(path)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(f.path))
		p := byPath[dir]
		if p == nil {
			p = &pkg{path: dir}
			byPath[dir] = p
			all = append(all, p)
		}
		p.add(f)
		return nil
	})
	return all, err
})

// ignored tells which directories hold no source of ours.
func ignored(path, name string) bool {
	return path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "data")
}

func parse(path string) (*file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	return parseText(rel, text)
}

func parseText(name string, text []byte) (*file, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	return &file{File: parsed, path: name, lines: bytes.Split(text, []byte("\n")), fset: fset}, nil
}

func (p *pkg) add(f *file) {
	if strings.HasSuffix(f.path, "_test.go") {
		p.tests = append(p.tests, f)
		return
	}
	p.code = append(p.code, f)
}

// forbid fails the test when there are findings.
func forbid(t *testing.T, rule string, findings []string) {
	t.Helper()
	require.Empty(t, findings, "%s:\n%s", rule, strings.Join(findings, "\n"))
}

// buildable reports whether the file belongs to the package on this system.
func (f *file) buildable() bool {
	ok, err := build.Default.MatchFile(filepath.Join(root, filepath.Dir(f.path)), filepath.Base(f.path))
	return err == nil && ok
}

// reparse parses a file again, for a check of types together with others.
func reparse(t *testing.T, fset *token.FileSet, f *file) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(fset, f.path, bytes.Join(f.lines, []byte("\n")), parser.SkipObjectResolution)
	require.NoError(t, err)
	return parsed
}
