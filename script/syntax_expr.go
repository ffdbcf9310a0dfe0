package script

// What an expression can be used for.
type exprKind int

const (
	plainExpr exprKind = iota
	variableExpr
	callExpr
)

func (c *checker) list() {
	for c.expression(); c.accept(","); c.expression() {
	}
}

// expressionStatement passes a call or an assignment.
func (c *checker) expressionStatement() {
	kind := c.primary()
	if kind == callExpr {
		return
	}
	for {
		if kind != variableExpr {
			c.wrong("syntax error")
		}
		if !c.accept(",") {
			break
		}
		kind = c.primary()
	}
	c.want("=")
	c.list()
}

func (c *checker) expression() { c.binary(0) }

// priority returns how strongly a binary operator binds on its left and right, 0 for what is none.
func priority(op string) (left, right int) {
	switch op {
	case "+", "-":
		return 6, 6
	case "*", "/", "%":
		return 7, 7
	case "^":
		return 10, 9
	case "..":
		return 5, 4
	case "~=", "==", "<", "<=", ">", ">=":
		return 3, 3
	case "and":
		return 2, 2
	case "or":
		return 1, 1
	}
	return 0, 0
}

const unaryPriority = 8

func (c *checker) binary(limit int) {
	c.enter()
	if c.is("not") || c.is("-") || c.is("#") {
		c.advance()
		c.binary(unaryPriority)
	} else {
		c.simple()
	}
	for left, right := priority(c.now.kind); left > limit; left, right = priority(c.now.kind) {
		c.advance()
		c.binary(right)
	}
	c.leave()
}

func (c *checker) simple() {
	switch c.now.kind {
	case tokenNumber, tokenString, "nil", "true", "false":
		c.advance()
	case "...":
		if !c.vararg[len(c.vararg)-1] {
			c.wrong("cannot use '...' outside a vararg function")
		}
		c.advance()
	case "{":
		c.table()
	case "function":
		line := c.now.line
		c.advance()
		c.body(line)
	default:
		c.primary()
	}
}

// primary passes a name or parentheses with all that is called or indexed behind it.
func (c *checker) primary() exprKind {
	kind := plainExpr
	switch line := c.now.line; c.now.kind {
	case tokenName:
		c.advance()
		kind = variableExpr
	case "(":
		c.advance()
		c.expression()
		c.closes(")", "(", line)
	default:
		c.wrong("unexpected symbol")
	}
	for {
		switch c.now.kind {
		case ".":
			c.advance()
			c.want(tokenName)
			kind = variableExpr
		case "[":
			c.advance()
			c.expression()
			c.want("]")
			kind = variableExpr
		case ":":
			c.advance()
			c.want(tokenName)
			c.arguments()
			kind = callExpr
		case "(", tokenString, "{":
			c.arguments()
			kind = callExpr
		default:
			return kind
		}
	}
}

func (c *checker) arguments() {
	line := c.now.line
	switch c.now.kind {
	case tokenString:
		c.advance()
	case "{":
		c.table()
	case "(":
		if line != c.lastLine {
			c.wrong("ambiguous syntax (function call x new statement)")
		}
		c.advance()
		if !c.is(")") {
			c.list()
		}
		c.closes(")", "(", line)
	default:
		c.wrong("function arguments expected")
	}
}

func (c *checker) table() {
	line := c.now.line
	c.want("{")
	for !c.is("}") {
		switch {
		case c.is("["):
			c.advance()
			c.expression()
			c.want("]")
			c.want("=")
		case c.is(tokenName) && c.look().kind == "=":
			c.advance()
			c.advance()
		}
		c.expression()
		if !c.accept(",") && !c.accept(";") {
			break
		}
	}
	c.closes("}", "{", line)
}
