package script

import (
	"slices"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// use is what is done with a value when an error can say that it cannot be done.
type use int

const (
	indexing use = iota
	calling
	arithmetic
	joining
	lengthOf
)

// hint is what an expression is called in messages: "local 'x'", "field 'y'". The interpreter's errors tell the line only, so
// a name is given where just one fits.
type hint struct {
	use    use
	key    string // of an index expression
	name   string // as the message has it
	global string // name of the variable, for a global one
}

// hints are those of a chunk, by line.
type hints map[int][]hint

const (
	maxHints  = 50  // of one line
	maxChunks = 100 // whose hints are remembered
)

// note remembers what the expression e is called.
func (r *rewriter) note(u use, line int, key string, e ast.Expr) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		kind := r.kindOf(e.Value)
		global := ""
		if kind == "global" {
			global = e.Value
		}
		r.noteName(u, line, key, kind+" '"+e.Value+"'", global)
	case *ast.AttrGetExpr:
		if field := keyText(e.Key); field != "" {
			r.noteName(u, line, key, "field '"+field+"'", "")
			return
		}
		r.noteName(u, line, key, "field '?'", "")
	case *ast.NumberExpr, *ast.StringExpr:
	default:
		r.noteName(u, line, key, "", "")
	}
}

func (r *rewriter) noteName(u use, line int, key, name, global string) {
	h := hint{u, key, name, global}
	if len(r.hints[line]) < maxHints && !slices.Contains(r.hints[line], h) {
		r.hints[line] = append(r.hints[line], h)
	}
}

// kindOf tells what a name means at this place.
func (r *rewriter) kindOf(name string) string {
	kind := "local"
	for i := len(r.scopes) - 1; i >= 0; i-- {
		if r.scopes[i].names[name] {
			return kind
		}
		if r.scopes[i].function {
			kind = "upvalue"
		}
	}
	return "global"
}

// remember keeps the hints of a chunk.
func (s *state) remember(name string, h hints) {
	if len(s.hints) >= maxChunks {
		clear(s.hints)
	}
	s.hints[name] = h
}

// called returns the name of what could not be used in a line, with a blank behind it, "" where that is not certain.
func (s *state) called(chunk string, line int, u use, key, typ string) string {
	name, found := "", false
	for _, h := range s.hints[chunk][line] {
		if h.use != u || u == indexing && h.key != key || !s.possible(h, typ) {
			continue
		}
		if found && h.name != name {
			return ""
		}
		name, found = h.name, true
	}
	if name == "" {
		return ""
	}
	return name + " "
}

// possible tells whether the value can be of a type: known for global variables, if nobody has changed them meanwhile.
func (s *state) possible(h hint, typ string) bool {
	if h.global == "" || typ == "" {
		return true
	}
	globals, ok := s.l.Get(lua.GlobalsIndex).(*lua.LTable)
	return !ok || globals.RawGetString(h.global).Type().String() == typ
}
