package lint

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Only a command may end the process, and nobody uses the global loggers: a package is handed its *slog.Logger.
func TestNoExitAndNoGlobalLogger(t *testing.T) {
	var findings []string
	for _, p := range load(t) {
		if isCommand(p) {
			continue
		}
		for _, f := range p.code {
			findings = append(findings, globalCalls(f)...)
		}
	}
	forbid(t, "os.Exit or a global logger outside cmd", findings)
}

// isCommand reports whether a package is a program: in cmd, or a tool of ours elsewhere.
func isCommand(p *pkg) bool { return len(p.code) > 0 && p.code[0].Name.Name == "main" }

func globalCalls(f *file) []string {
	forbidden := map[string]bool{
		"os.Exit": true, "slog.Debug": true, "slog.Info": true, "slog.Warn": true, "slog.Error": true,
		"slog.Log": true, "slog.Default": true, "slog.SetDefault": true,
	}
	var findings []string
	eachCall(f, func(name string, call *ast.CallExpr) {
		if forbidden[name] || strings.HasPrefix(name, "log.") && importsLog(f) {
			findings = append(findings, f.at(call)+" "+name)
		}
	})
	return findings
}

func importsLog(f *file) bool {
	for _, spec := range f.Imports {
		if unquote(spec.Path.Value) == "log" {
			return true
		}
	}
	return false
}

// A pause is no way to wait for something: it is too short on a busy machine and too long on any other. The few that
// must be have their reason beside them: //lint:sleep reason.
func TestNoSleepWithoutAReason(t *testing.T) {
	var findings []string
	for _, p := range load(t) {
		for _, f := range append(p.code, p.tests...) {
			findings = append(findings, sleeps(f)...)
		}
	}
	forbid(t, "time.Sleep without //lint:sleep reason on its line or the one before", findings)
}

func sleeps(f *file) []string {
	const mark = "//" + "lint:sleep "
	var findings []string
	eachCall(f, func(name string, call *ast.CallExpr) {
		n := f.fset.Position(call.Pos()).Line
		if name == "time.Sleep" && !strings.Contains(f.line(n), mark) && !strings.Contains(f.line(n-1), mark) {
			findings = append(findings, f.at(call))
		}
	})
	return findings
}

// eachCall visits the calls of the form package.Function.
func eachCall(f *file, visit func(name string, call *ast.CallExpr)) {
	ast.Inspect(f.File, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name := selected(call.Fun); name != "" {
				visit(name, call)
			}
		}
		return true
	})
}

// selected returns "x.Sel" for a selector on a name that is no local variable, else "".
func selected(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok || x.Obj != nil {
		return ""
	}
	return x.Name + "." + s.Sel.Name
}

func TestCommandsAreMainPackages(t *testing.T) {
	for text, want := range map[string]bool{"package main": true, "package mainly": false} {
		f, err := parseText("x.go", []byte(text))
		require.NoError(t, err)
		require.Equal(t, want, isCommand(&pkg{path: "cmd/x", code: []*file{f}}))
	}
	require.False(t, isCommand(&pkg{path: "only/tests"}))
}

func TestForbiddenCallsAreFound(t *testing.T) {
	f, err := parseText("x.go", []byte(`package x
import ("log"; "os"; "time")
func f(slog *T) {
	os.Exit(1)
	log.Print()
	slog.Info()
	time.Sleep(1)
	time.Sleep(2) //lint:sleep the clock must move on
}`))
	require.NoError(t, err)
	require.Equal(t, []string{"x.go:4 os.Exit", "x.go:5 log.Print"}, globalCalls(f))
	require.Equal(t, []string{"x.go:7"}, sleeps(f))
}
