package lint

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two servers in one process, as in a test, must not share anything: there is no init function and no variable of a
// package. What never changes is allowed: error values, compiled expressions, tables.
func TestNoStateInPackages(t *testing.T) {
	var findings []string
	for _, p := range load(t) {
		findings = append(findings, packageState(p.code)...)
	}
	forbid(t, "init functions and package variables that can change", findings)
}

func packageState(files []*file) []string {
	changed, tables := changedNames(files), tableMakers(files)
	var findings []string
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					findings = append(findings, f.at(d)+" init")
				}
			case *ast.GenDecl:
				if d.Tok != token.VAR {
					continue
				}
				for _, s := range d.Specs {
					findings = append(findings, variables(f, s.(*ast.ValueSpec), changed, tables)...)
				}
			}
		}
	}
	return findings
}

func variables(f *file, s *ast.ValueSpec, changed, tables map[string]bool) []string {
	var findings []string
	for i, name := range s.Names {
		var value ast.Expr
		if i < len(s.Values) {
			value = s.Values[i]
		}
		if name.Name != "_" && !embedded(f, name) && (changed[name.Name] || !constant(name.Name, value, tables)) {
			findings = append(findings, f.at(name)+" "+name.Name)
		}
	}
	return findings
}

// embedded tells whether a variable has files of the program, which nobody can change.
func embedded(f *file, name *ast.Ident) bool {
	return strings.HasPrefix(f.line(f.fset.Position(name.Pos()).Line-1), "//go:embed ")
}

// constant tells whether a variable with this first value stays what it is when nobody assigns to it.
func constant(name string, value ast.Expr, tables map[string]bool) bool {
	switch v := value.(type) {
	case *ast.CompositeLit, *ast.BasicLit, *ast.FuncLit:
		return true
	case *ast.UnaryExpr: // an error with fields
		_, literal := v.X.(*ast.CompositeLit)
		return v.Op == token.AND && literal && strings.HasPrefix(strings.ToLower(name), "err")
	case *ast.CallExpr:
		return constantCall(v, tables)
	}
	return false
}

func constantCall(call *ast.CallExpr, tables map[string]bool) bool {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return tables[fun.Name]
	case *ast.ArrayType: // []byte("text")
		return true
	case *ast.SelectorExpr:
		switch selected(fun) {
		case "errors.New", "fmt.Errorf", "regexp.MustCompile", "regexp2.MustCompile", "crc32.MakeTable",
			"strings.NewReplacer", "time.Unix", "time.Date":
			return true
		}
	}
	return false
}

// tableMakers are the functions that return one array or slice, with which a table is computed.
func tableMakers(files []*file) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			fun, ok := d.(*ast.FuncDecl)
			if !ok || fun.Recv != nil || fun.Type.Results.NumFields() != 1 {
				continue
			}
			if _, array := fun.Type.Results.List[0].Type.(*ast.ArrayType); array {
				names[fun.Name.Name] = true
			}
		}
	}
	return names
}

// changedNames are the package variables that some function assigns to or deletes from.
func changedNames(files []*file) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		note := func(e ast.Expr) {
			if id := base(e); id != nil && packageLevel(f, id) {
				names[id.Name] = true
			}
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, left := range n.Lhs {
						note(left)
					}
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "delete" || id.Name == "clear") && len(n.Args) > 0 {
					note(n.Args[0])
				}
			}
			return true
		})
	}
	return names
}

// base is the x of x, x.f, x[i], *x and what is made of them.
func base(e ast.Expr) *ast.Ident {
	for {
		switch v := e.(type) {
		case *ast.Ident:
			return v
		case *ast.SelectorExpr:
			e = v.X
		case *ast.IndexExpr:
			e = v.X
		case *ast.StarExpr:
			e = v.X
		case *ast.ParenExpr:
			e = v.X
		default:
			return nil
		}
	}
}

// packageLevel tells local names from those of the package: the parser resolves names within their file.
func packageLevel(f *file, id *ast.Ident) bool {
	return id.Obj == nil || f.Scope.Lookup(id.Name) == id.Obj
}

func TestStateIsFound(t *testing.T) {
	f, err := parseText("x.go", []byte(`package x
var ErrA = errors.New("a")
var errB error = &E{}
var table = map[string]int{"a": 1}
var counts = map[string]int{}
var mu sync.Mutex
var cache = make(map[string]int)
var _ io.Reader = (*T)(nil)
var p = &T{}
var squares = makeSquares()
var pool = makePool()
func init() {}
func makeSquares() (t [9]int) { return }
func makePool() *Pool { return nil }
func f() {
	var local int
	local = table["a"]
	counts["a"]++
	var table []int
	table[0] = local
}`))
	require.NoError(t, err)
	require.Equal(t, []string{"x.go:5 counts", "x.go:6 mu", "x.go:7 cache", "x.go:9 p", "x.go:11 pool", "x.go:12 init"},
		packageState([]*file{f}))
}
