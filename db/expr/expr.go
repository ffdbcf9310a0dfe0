// Package expr parses the expressions by which the command line names databases, and derives from
// them what a fresh database of the original reports about itself: kinds, parameters, the order of
// keys, base sizes and the constant rows of status.
package expr

import (
	"gotycoon/db/dberr"
	"strings"
)

// Expr is a database expression of the command line: PATH#key=value#key=value...
type Expr struct {
	Raw    string // as given
	Path   string // in front of the first #; also what status and report show
	Name   string // the last component of Path: what clients find the database by
	Kind   Kind
	Params Params
}

// Parse parses a database expression. The kind comes from the last component of the path, which is
// one of - + : * % or has a known suffix, or from the parameter type. Parse returns ErrUnknownType
// where neither names a kind.
func Parse(s string) (Expr, error) {
	path, params, _ := strings.Cut(s, "#")
	e := Expr{Raw: s, Path: path, Name: path[strings.LastIndexByte(path, '/')+1:], Params: newParams()}
	e.Kind = kindOfPath(e.Name)
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, "#")
		e.set(param)
	}
	if e.Kind == 0 {
		return Expr{}, dberr.ErrUnknownType
	}
	if !e.Kind.Compared() {
		e.Params.RComp = Lexical
	}
	return e, nil
}

// set takes over one parameter. It ignores unknown keys, parts without "=", and what follows a
// second "=".
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

// ErrNoVersions refuses a database that cannot keep versions.
var ErrNoVersions = &dberr.Error{Code: dberr.InvalidOperation, Message: "lww=true needs a database file (.kct, .kch, .kcd or .kcf) in the order of its keys as bytes"}

// VersionsPossible returns why a database cannot keep the versions that its expression asks for.
func (e *Expr) VersionsPossible() error {
	if e.Params.LWW && (!e.Kind.OnDisk() || e.Kind == Text || e.Params.RComp != Lexical) {
		return ErrNoVersions
	}
	return nil
}

// ParseShared parses the expression of a database in an engine that servers share. It is a name,
// behind which are the parameters.
func ParseShared(s string) Expr {
	e := ParsePlugged(s)
	e.Path, _, _ = strings.Cut(s, "#")
	e.Name = e.Path
	return e
}

// ParsePlugged parses the expression of a database in an engine. The engine is given the whole
// expression, and clients know the database by what follows the last slash, parameters included.
// Only ktopts, ktcapcnt and ktcapsiz have a meaning here.
func ParsePlugged(s string) Expr {
	e := Expr{Raw: s, Path: s, Name: s[strings.LastIndexByte(s, '/')+1:], Kind: Plugged, Params: newParams()}
	_, params, _ := strings.Cut(s, "#")
	all := newParams()
	for param := range strings.SplitSeq(params, "#") {
		if key, value, found := strings.Cut(param, "="); found {
			value, _, _ = strings.Cut(value, "=")
			all.set(key, value)
		}
	}
	e.Params.Persistent, e.Params.KTCapCnt, e.Params.KTCapSiz = all.Persistent, all.KTCapCnt, all.KTCapSiz
	return e
}
