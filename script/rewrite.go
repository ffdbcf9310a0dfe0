package script

import (
	"errors"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// Limits of a chunk.
const (
	// maxLevels is how deep constructs may be inside each other, as in the reference interpreter.
	// Parentheses leave no trace in the tree: strict counts them.
	maxLevels = 200

	// maxDepth bounds the recursion over the tree, which is deeper than its levels: each elseif is
	// a step below the one before, and each left operand of a long sum a step below the sum.
	maxDepth = 5000

	// maxLookups bounds the cost of compiling a chunk within a call, because nothing can stop the
	// compiler: it compares each constant with all constants of its function. A function with 8000
	// different constants takes half a second. The script itself is not bounded.
	maxLookups = 1 << 26

	// maxOperands is how many operands one call of the function for concatenations takes. They need
	// registers side by side.
	maxOperands = 50
)

var (
	errDeep       = errors.New("chunk has too many syntax levels")
	errStatement  = errors.New("syntax error: a call in parentheses is no statement")
	errBadNumeral = errors.New("malformed number")
)

// Concatenations are compiled to calls of our own function, because the library's operator writes
// numbers in another way. A chunk keeps the function in the local variable concatName, and gets it
// by indexing a number with concatKey. A script can use neither name by accident: a variable has no
// parentheses in its name, and the key begins with a NUL.
const (
	concatName = "(concat)"
	concatKey  = "\x00concat"
)

// rewriter changes the syntax tree of a chunk, so that numbers have the values of the reference
// interpreter and concatenations call our own function. It refuses trees that the reference
// interpreter does not accept, or that are too deep to walk over.
type rewriter struct {
	constants []constants // of the enclosing functions, innermost last
	lookups   int         // cost of the constants, see maxLookups
	levels    int
	depth     int
	joins     bool // there is a concatenation
	err       error
}

// constants are the constants of one function.
type constants struct {
	different map[string]struct{}
	uses      int
}

// use counts a constant or the name of a variable. kind keeps numbers and texts apart.
func (r *rewriter) use(kind, value string) {
	c := &r.constants[len(r.constants)-1]
	c.different[kind+value] = struct{}{}
	c.uses++
}

// chunk rewrites a whole chunk. With a concatenation in it, the chunk gets the local variable
// concatName.
func (r *rewriter) chunk(stmts []ast.Stmt) ([]ast.Stmt, error) {
	r.function(stmts)
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

// function rewrites the body of a function, and adds up the cost of its constants.
func (r *rewriter) function(stmts []ast.Stmt) {
	r.constants = append(r.constants, constants{different: map[string]struct{}{}})
	r.block(stmts)
	last := len(r.constants) - 1
	c := r.constants[last]
	r.constants = r.constants[:last]
	r.lookups += c.uses * len(c.different)
}

// down walks over a part of the tree that is deeper by some levels.
func (r *rewriter) down(levels int, walk func()) {
	r.depth++
	r.levels += levels
	if r.depth > maxDepth || r.levels > maxLevels {
		r.err = errDeep
	}
	if r.err == nil {
		walk()
	}
	r.levels -= levels
	r.depth--
}

func (r *rewriter) block(stmts []ast.Stmt) {
	r.down(1, func() {
		for _, stmt := range stmts {
			r.stmt(stmt)
		}
	})
}

func (r *rewriter) stmt(stmt ast.Stmt) {
	switch stmt := stmt.(type) {
	case *ast.AssignStmt:
		r.exprs(stmt.Rhs)
		r.exprs(stmt.Lhs)
	case *ast.LocalAssignStmt:
		r.exprs(stmt.Exprs)
	case *ast.FuncCallStmt:
		if call, ok := stmt.Expr.(*ast.FuncCallExpr); ok && call.AdjustRet {
			r.err = errStatement
		}
		r.expr(&stmt.Expr)
	case *ast.DoBlockStmt:
		r.block(stmt.Stmts)
	case *ast.WhileStmt:
		r.expr(&stmt.Condition)
		r.block(stmt.Stmts)
	case *ast.RepeatStmt:
		r.block(stmt.Stmts)
		r.expr(&stmt.Condition)
	case *ast.IfStmt:
		r.expr(&stmt.Condition)
		r.block(stmt.Then)
		r.otherwise(stmt.Else)
	case *ast.NumberForStmt:
		r.expr(&stmt.Init)
		r.expr(&stmt.Limit)
		r.expr(&stmt.Step)
		r.block(stmt.Stmts)
	case *ast.GenericForStmt:
		r.exprs(stmt.Exprs)
		r.block(stmt.Stmts)
	case *ast.FuncDefStmt:
		r.expr(&stmt.Name.Func)
		r.expr(&stmt.Name.Receiver)
		r.function(stmt.Func.Stmts)
	case *ast.ReturnStmt:
		r.exprs(stmt.Exprs)
	}
}

// otherwise rewrites the block of an else, or an elseif, which is no deeper block in the reference
// interpreter.
func (r *rewriter) otherwise(stmts []ast.Stmt) {
	if len(stmts) == 1 {
		if next, ok := stmts[0].(*ast.IfStmt); ok {
			r.down(0, func() { r.stmt(next) })
			return
		}
	}
	r.block(stmts)
}

func (r *rewriter) exprs(list []ast.Expr) {
	for i := range list {
		r.expr(&list[i])
	}
}

// expr rewrites an expression in its place.
func (r *rewriter) expr(e *ast.Expr) { r.operand(e, 1) }

// operand is expr for an expression that is deeper by some levels: 0 for a left operand and for a
// value that is called or indexed.
func (r *rewriter) operand(e *ast.Expr, levels int) {
	if *e != nil {
		r.down(levels, func() { r.exprHere(e) })
	}
}

func (r *rewriter) exprHere(place *ast.Expr) {
	switch e := (*place).(type) {
	case *ast.StringExpr:
		r.use("s", e.Value)
	case *ast.IdentExpr:
		r.use("s", e.Value)
	case *ast.NumberExpr:
		r.use("n", e.Value)
		f, ok := parseNumber(e.Value)
		if !ok {
			r.err = errBadNumeral
		}
		e.Value = strconv.FormatFloat(f, 'g', -1, 64) // a zero in front does not mean another base
	case *ast.AttrGetExpr:
		r.operand(&e.Object, 0)
		r.expr(&e.Key)
	case *ast.TableExpr:
		for _, field := range e.Fields {
			r.expr(&field.Key)
			r.expr(&field.Value)
		}
	case *ast.FuncCallExpr:
		r.operand(&e.Func, 0)
		r.operand(&e.Receiver, 0)
		r.exprs(e.Args)
	case *ast.LogicalOpExpr:
		r.operands(&e.Lhs, &e.Rhs)
	case *ast.RelationalOpExpr:
		r.operands(&e.Lhs, &e.Rhs)
	case *ast.ArithmeticOpExpr:
		r.operands(&e.Lhs, &e.Rhs)
	case *ast.StringConcatOpExpr:
		*place = r.concat(e)
	case *ast.UnaryMinusOpExpr:
		r.expr(&e.Expr)
	case *ast.UnaryNotOpExpr:
		r.expr(&e.Expr)
	case *ast.UnaryLenOpExpr:
		r.expr(&e.Expr)
	case *ast.FunctionExpr:
		r.function(e.Stmts)
	}
}

func (r *rewriter) operands(left, right *ast.Expr) {
	r.operand(left, 0)
	r.expr(right)
}

// concat turns a chain of concatenations into a call. Each operand is a level deeper than the
// operand before it.
func (r *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	r.joins = true
	var operands []ast.Expr
	var rest ast.Expr = e
	for {
		chain, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		operands, rest = append(operands, chain.Lhs), chain.Rhs
	}
	operands = append(operands, rest)
	for i := range operands {
		r.operand(&operands[i], i)
	}
	if r.err != nil { // there may be a million operands, and the chunk is refused anyway
		return e
	}
	for len(operands) > maxOperands { // from the right, as the operator binds
		at := len(operands) - maxOperands
		operands = append(operands[:at:at], concatCall(e, operands[at:]))
	}
	return concatCall(e, operands)
}

func concatCall(e *ast.StringConcatOpExpr, operands []ast.Expr) ast.Expr {
	switch last := operands[len(operands)-1].(type) { // only its first value counts
	case *ast.FuncCallExpr:
		last.AdjustRet = true
	case *ast.Comma3Expr:
		last.AdjustRet = true
	}
	name := &ast.IdentExpr{Value: concatName}
	call := &ast.FuncCallExpr{Func: name, Args: operands, AdjustRet: true}
	for _, node := range []ast.PositionHolder{name, call} {
		node.SetLine(e.Line())
		node.SetLastLine(e.LastLine())
	}
	return call
}
