package db

import "strings"

// Expr is a database expression of the command line: PATH#key=value#key=value... (reference: section 14).
type Expr struct {
	Raw    string // as given
	Path   string // in front of the first #; also what status and report show
	Name   string // the last component of Path: what clients find the database by
	Kind   Kind
	Params Params
}

// ParseExpr parses a database expression. The kind comes from the last path component, exactly one of - + : * % or
// with a known suffix, or from the type parameter. It returns ErrUnknownType where neither names one.
func ParseExpr(s string) (Expr, error) {
	path, params, _ := strings.Cut(s, "#")
	e := Expr{Raw: s, Path: path, Name: path[strings.LastIndexByte(path, '/')+1:], Params: newParams()}
	e.Kind = kindOfPath(e.Name)
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, "#")
		e.set(param)
	}
	if e.Kind == 0 {
		return Expr{}, ErrUnknownType
	}
	if !e.Kind.Compared() {
		e.Params.RComp = Lexical
	}
	return e, nil
}

// set takes over one parameter. Unknown keys, and parts without "=", are ignored, as is whatever follows a second "=".
func (e *Expr) set(param string) {
	key, value, found := strings.Cut(param, "=")
	if !found {
		return
	}
	value, _, _ = strings.Cut(value, "=")
	if key != "type" {
		e.Params.set(key, value)
		return
	}
	if kind := kindOfType(value); kind != 0 {
		e.Kind = kind
	}
}
