package script

import (
	"errors"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
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
	if err := checkSyntax(source, name); err != nil {
		return nil, err
	}
	chunk, err := parse.Parse(strings.NewReader(source), name)
	if err != nil {
		return nil, syntaxError(err, name)
	}
	r := rewriter{hints: hints{}}
	chunk, err = r.chunk(chunk)
	if err != nil {
		return nil, errors.New(name + ":1: " + err.Error())
	}
	if s.serving && r.lookups > maxLookups {
		return nil, errors.New(name + ":1: function has too many constants to be loaded within a call")
	}
	proto, err := lua.Compile(chunk, name)
	if err != nil {
		return nil, syntaxError(err, name)
	}
	s.remember(name, r.hints)
	return s.l.NewFunctionFromProto(proto), nil
}

// syntaxError gives an error of the parser or compiler the usual form.
func syntaxError(err error, name string) error {
	if e, ok := errors.AsType[*parse.Error](err); ok {
		near := "<eof>"
		if e.Token != "" {
			near = e.Token
		}
		return errors.New(name + ":" + strconv.Itoa(max(e.Pos.Line, 1)) + ": syntax error near '" + near + "'")
	}
	if e, ok := errors.AsType[*lua.CompileError](err); ok {
		return errors.New(name + ":" + strconv.Itoa(e.Line) + ": " + e.Message)
	}
	return errors.New(name + ":1: " + err.Error())
}

// errDeep refuses a chunk whose expressions or blocks are too deep inside each other to walk them.
var errDeep = errors.New("chunk has too many syntax levels")

const maxSyntaxDepth = 5000

// rewriter changes the syntax tree of a chunk and notes what its expressions are called.
type rewriter struct {
	hints     hints
	constants []constants // of the functions around
	lookups   int         // of constants, see maxLookups

	scopes []scope
	depth  int
	joins  bool // there is a concatenation
	err    error
}

// maxLookups bounds what compiling a chunk may cost within a call, which nobody can stop then: the compiler compares each constant with
// all those of its function. A function of 8000 different constants takes half a second. The script itself may have any number.
const maxLookups = 1 << 26

// constants are those of a function.
type constants struct {
	different map[string]struct{}
	uses      int
}

// use counts a constant or the name of a variable. kind keeps numbers and texts apart.
func (r *rewriter) use(kind, value string) {
	if n := len(r.constants); n > 0 {
		c := &r.constants[n-1]
		c.different[kind+value] = struct{}{}
		c.uses++
	}
}

// scope is the local variables of a block.
type scope struct {
	names    map[string]bool
	function bool // it is the outermost of a function
}

func (r *rewriter) chunk(stmts []ast.Stmt) ([]ast.Stmt, error) {
	r.block(stmts, true, nil)
	if r.err != nil || !r.joins {
		return stmts, r.err
	}
	get := &ast.AttrGetExpr{Object: &ast.NumberExpr{Value: "0.5"}, Key: &ast.StringExpr{Value: concatKey}}
	local := &ast.LocalAssignStmt{Names: []string{concatName}, Exprs: []ast.Expr{get}}
	for _, node := range []ast.PositionHolder{get, get.Object, get.Key, local} {
		node.SetLine(1)
		node.SetLastLine(1)
	}
	return append([]ast.Stmt{local}, stmts...), nil
}

// block rewrites statements in a scope of their own with some variables.
func (r *rewriter) block(stmts []ast.Stmt, function bool, names []string) {
	if r.depth++; r.depth > maxSyntaxDepth {
		r.err = errDeep
	}
	if r.err == nil {
		if function {
			r.constants = append(r.constants, constants{different: map[string]struct{}{}})
			defer r.endFunction()
		}
		r.scopes = append(r.scopes, scope{map[string]bool{}, function})
		r.declare(names...)
		for _, stmt := range stmts {
			r.stmt(stmt)
		}
		r.scopes = r.scopes[:len(r.scopes)-1]
	}
	r.depth--
}

// endFunction adds up what the constants of a function cost.
func (r *rewriter) endFunction() {
	last := len(r.constants) - 1
	c := r.constants[last]
	r.constants = r.constants[:last]
	r.lookups += c.uses * len(c.different)
}

func (r *rewriter) declare(names ...string) {
	for _, name := range names {
		r.scopes[len(r.scopes)-1].names[name] = true
	}
}

func (r *rewriter) stmt(stmt ast.Stmt) {
	switch stmt := stmt.(type) {
	case *ast.AssignStmt:
		r.exprs(stmt.Rhs)
		r.exprs(stmt.Lhs)
	case *ast.LocalAssignStmt:
		r.localAssign(stmt)
	case *ast.FuncCallStmt:
		r.expr(&stmt.Expr)
	case *ast.DoBlockStmt:
		r.block(stmt.Stmts, false, nil)
	case *ast.WhileStmt:
		r.expr(&stmt.Condition)
		r.block(stmt.Stmts, false, nil)
	case *ast.RepeatStmt:
		r.block(stmt.Stmts, false, nil)
		r.expr(&stmt.Condition)
	case *ast.IfStmt:
		r.expr(&stmt.Condition)
		r.block(stmt.Then, false, nil)
		r.block(stmt.Else, false, nil)
	case *ast.NumberForStmt:
		r.expr(&stmt.Init)
		r.expr(&stmt.Limit)
		r.expr(&stmt.Step)
		r.block(stmt.Stmts, false, []string{stmt.Name})
	case *ast.GenericForStmt:
		r.exprs(stmt.Exprs)
		r.block(stmt.Stmts, false, stmt.Names)
	case *ast.FuncDefStmt:
		r.funcDef(stmt)
	case *ast.ReturnStmt:
		r.exprs(stmt.Exprs)
	}
}

// localAssign knows that "local function f" may call itself and "local x = x" means another x.
func (r *rewriter) localAssign(stmt *ast.LocalAssignStmt) {
	_, function := firstExpr(stmt.Exprs).(*ast.FunctionExpr)
	if function && len(stmt.Names) == 1 {
		r.declare(stmt.Names...)
	}
	r.exprs(stmt.Exprs)
	r.declare(stmt.Names...)
}

func firstExpr(exprs []ast.Expr) ast.Expr {
	if len(exprs) == 0 {
		return nil
	}
	return exprs[0]
}

func (r *rewriter) funcDef(stmt *ast.FuncDefStmt) {
	if stmt.Name.Func != nil {
		r.expr(&stmt.Name.Func)
	}
	if stmt.Name.Receiver != nil {
		r.expr(&stmt.Name.Receiver)
	}
	var e ast.Expr = stmt.Func
	if stmt.Name.Method != "" {
		r.function(stmt.Func, "self")
		return
	}
	r.expr(&e)
}

func (r *rewriter) function(f *ast.FunctionExpr, more ...string) {
	r.block(f.Stmts, true, append(more, f.ParList.Names...))
}
