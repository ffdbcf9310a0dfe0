package lint

import (
	"go/ast"
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"
)

// A newcomer reads the package comments first.
func TestEveryPackageHasAComment(t *testing.T) {
	var findings []string
	for _, p := range load(t) {
		if !hasComment(p) {
			findings = append(findings, p.path)
		}
	}
	forbid(t, "packages without a package comment", findings)
}

func hasComment(p *pkg) bool {
	files := p.code
	if len(files) == 0 {
		files = p.tests
	}
	for _, f := range files {
		if f.Doc != nil {
			return true
		}
	}
	return false
}

// Exported names are what other packages build on: each says what it is, in which unit, and what goes wrong.
func TestExportedNamesAreDocumented(t *testing.T) {
	var findings []string
	for _, p := range load(t) {
		for _, f := range p.code {
			findings = append(findings, undocumented(f)...)
		}
	}
	forbid(t, "exported names without a comment", findings)
}

func undocumented(f *file) []string {
	var findings []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				findings = append(findings, f.at(d)+" "+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, name := range undocumentedSpecs(d) {
				findings = append(findings, f.at(name)+" "+name.Name)
			}
		}
	}
	return findings
}

// exportedReceiver tells whether a method belongs to the documentation; functions do.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// undocumentedSpecs accepts a comment before the name, behind it, or before the group for constants and variables.
func undocumentedSpecs(d *ast.GenDecl) []*ast.Ident {
	var bare []*ast.Ident
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			single := d.Lparen == token.NoPos && d.Doc != nil
			if s.Name.IsExported() && s.Doc == nil && s.Comment == nil && !single {
				bare = append(bare, s.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
					bare = append(bare, name)
				}
			}
		}
	}
	return bare
}

func TestUndocumentedNamesAreFound(t *testing.T) {
	f, err := parseText("x.go", []byte(`package x
// A is documented.
type A struct{}
type B struct{}
func (a *A) M() {}
func (c *c[T]) M() {}
func F() {}
func f() {}
const (
	C = 1 // is documented
	D = 2
)`))
	require.NoError(t, err)
	require.Equal(t, []string{"x.go:4 B", "x.go:5 M", "x.go:7 F", "x.go:11 D"}, undocumented(f))
}
