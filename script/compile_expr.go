package script

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

func (r *rewriter) exprs(list []ast.Expr) {
	for i := range list {
		r.expr(&list[i])
	}
}

// expr rewrites an expression in its place.
func (r *rewriter) expr(e *ast.Expr) {
	if r.depth++; r.depth > maxSyntaxDepth {
		r.err = errDeep
	}
	if r.err == nil && *e != nil {
		r.exprHere(e)
	}
	r.depth--
}

func (r *rewriter) exprHere(place *ast.Expr) {
	switch e := (*place).(type) {
	case *ast.StringExpr:
		r.use("s", e.Value)
	case *ast.IdentExpr:
		r.use("s", e.Value)
	case *ast.NumberExpr:
		r.use("n", e.Value)
		if f, ok := parseNumber(e.Value); ok { // a zero in front does not mean another base
			e.Value = strconv.FormatFloat(f, 'g', -1, 64)
		}
	case *ast.AttrGetExpr:
		r.note(indexing, e.Line(), keyText(e.Key), e.Object)
		r.expr(&e.Object)
		r.expr(&e.Key)
	case *ast.TableExpr:
		for _, field := range e.Fields {
			r.expr(&field.Key)
			r.expr(&field.Value)
		}
	case *ast.FuncCallExpr:
		r.call(e)
	case *ast.LogicalOpExpr:
		r.exprs2(&e.Lhs, &e.Rhs)
	case *ast.RelationalOpExpr:
		r.exprs2(&e.Lhs, &e.Rhs)
	case *ast.ArithmeticOpExpr:
		r.note(arithmetic, e.Line(), "", e.Lhs)
		r.note(arithmetic, e.Line(), "", e.Rhs)
		r.exprs2(&e.Lhs, &e.Rhs)
	case *ast.StringConcatOpExpr:
		*place = r.concat(e)
	case *ast.UnaryMinusOpExpr:
		r.note(arithmetic, e.Line(), "", e.Expr)
		r.expr(&e.Expr)
	case *ast.UnaryNotOpExpr:
		r.expr(&e.Expr)
	case *ast.UnaryLenOpExpr:
		r.note(lengthOf, e.Line(), "", e.Expr)
		r.expr(&e.Expr)
	case *ast.FunctionExpr:
		r.function(e)
	}
}

func (r *rewriter) exprs2(a, b *ast.Expr) {
	r.expr(a)
	r.expr(b)
}

func (r *rewriter) call(e *ast.FuncCallExpr) {
	if e.Func != nil {
		r.note(calling, e.Line(), "", e.Func)
		r.expr(&e.Func)
	}
	if e.Receiver != nil {
		r.note(indexing, e.Line(), e.Method, e.Receiver)
		r.noteName(calling, e.Line(), "", "method '"+e.Method+"'", "")
		r.expr(&e.Receiver)
	}
	r.exprs(e.Args)
}

// maxOperands is how many operands one call takes: they need registers side by side.
const maxOperands = 50

// concat turns a chain of concatenations into a call.
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
		r.note(joining, e.Line(), "", operands[i])
		r.expr(&operands[i])
	}
	for len(operands) > maxOperands { // from the right, as the operator binds
		at := len(operands) - maxOperands
		operands = append(operands[:at:at], r.concatCall(e, operands[at:]))
	}
	return r.concatCall(e, operands)
}

func (r *rewriter) concatCall(e *ast.StringConcatOpExpr, operands []ast.Expr) ast.Expr {
	switch last := operands[len(operands)-1].(type) { // one value of it counts
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

// keyText is the key of an index expression where it is written down.
func keyText(e ast.Expr) string {
	if key, ok := e.(*ast.StringExpr); ok {
		return key.Value
	}
	return ""
}
