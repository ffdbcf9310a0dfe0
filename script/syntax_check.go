package script

import (
	"errors"
	"fmt"
	"slices"
)

// checkSyntax returns what is wrong with a chunk, in the words of the reference interpreter.
func checkSyntax(source, name string) (err error) {
	c := &checker{lexer: lexer{name: name, src: source, line: 1}, vararg: []bool{true}, loops: []int{0}}
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case *syntaxFault:
			err = errors.New(fault.message)
		default:
			panic(fault)
		}
	}()
	c.advance()
	c.block()
	c.want(tokenEnd)
	return nil
}

// checker walks through the grammar of the language.
type checker struct {
	lexer
	now, ahead token
	peeked     bool
	lastLine   int // of the token before now
	depth      int
	vararg     []bool // of the functions around, innermost last
	loops      []int  // the same: loops around within the function
}

// maxLevels is how deep constructs may be inside each other in the reference interpreter.
const maxLevels = 200

func (c *checker) enter() {
	if c.depth++; c.depth > maxLevels {
		c.fail(c.line, "chunk has too many syntax levels", "")
	}
}

func (c *checker) leave() { c.depth-- }

func (c *checker) advance() {
	c.lastLine = c.now.line
	if c.peeked {
		c.now, c.peeked = c.ahead, false
		return
	}
	c.now = c.lexer.next()
}

func (c *checker) look() token {
	if !c.peeked {
		c.ahead, c.peeked = c.lexer.next(), true
	}
	return c.ahead
}

func (c *checker) wrong(message string) { c.fail(c.now.line, message, c.now.text) }

func (c *checker) is(kind string) bool { return c.now.kind == kind }

func (c *checker) accept(kind string) bool {
	if !c.is(kind) {
		return false
	}
	c.advance()
	return true
}

func (c *checker) want(kind string) {
	if !c.is(kind) {
		c.wrong(quoteToken(kind) + " expected")
	}
	if kind != tokenEnd {
		c.advance()
	}
}

func quoteToken(kind string) string {
	if kind == tokenName {
		return kind
	}
	return "'" + kind + "'"
}

// closes wants the token that ends what began in a line.
func (c *checker) closes(kind, opener string, line int) {
	if c.is(kind) || c.now.line == line {
		c.want(kind)
		return
	}
	c.wrong(fmt.Sprintf("'%s' expected (to close '%s' at line %d)", kind, opener, line))
}

// block passes statements up to what cannot be one.
func (c *checker) block() {
	c.enter()
	for !slices.Contains([]string{"else", "elseif", "end", tokenEnd, "until"}, c.now.kind) {
		last := c.statement()
		c.accept(";")
		if last {
			break
		}
	}
	c.leave()
}

// loopBlock is a block that may break.
func (c *checker) loopBlock() {
	c.loops[len(c.loops)-1]++
	c.block()
	c.loops[len(c.loops)-1]--
}

// statement passes one statement and tells whether it must be the last one of its block.
func (c *checker) statement() (last bool) {
	line := c.now.line
	switch c.now.kind {
	case "if":
		c.ifStatement(line)
	case "while":
		c.advance()
		c.expression()
		c.want("do")
		c.loopBlock()
		c.closes("end", "while", line)
	case "do":
		c.advance()
		c.block()
		c.closes("end", "do", line)
	case "for":
		c.forStatement(line)
	case "repeat":
		c.advance()
		c.loopBlock()
		c.closes("until", "repeat", line)
		c.expression()
	case "function":
		c.advance()
		c.want(tokenName)
		for c.accept(".") {
			c.want(tokenName)
		}
		if c.accept(":") {
			c.want(tokenName)
		}
		c.body(line)
	case "local":
		c.local(line)
	case "return":
		c.advance()
		if !slices.Contains([]string{"else", "elseif", "end", tokenEnd, "until", ";"}, c.now.kind) {
			c.list()
		}
		return true
	case "break":
		c.advance()
		if c.loops[len(c.loops)-1] == 0 {
			c.wrong("no loop to break")
		}
		return true
	default:
		c.expressionStatement()
	}
	return false
}

func (c *checker) ifStatement(line int) {
	for {
		c.advance()
		c.expression()
		c.want("then")
		c.block()
		if !c.is("elseif") {
			break
		}
	}
	if c.accept("else") {
		c.block()
	}
	c.closes("end", "if", line)
}

func (c *checker) forStatement(line int) {
	c.advance()
	c.want(tokenName)
	switch c.now.kind {
	case "=":
		c.advance()
		c.expression()
		c.want(",")
		c.expression()
		if c.accept(",") {
			c.expression()
		}
	case ",", "in":
		for c.accept(",") {
			c.want(tokenName)
		}
		c.want("in")
		c.list()
	default:
		c.wrong("'=' or 'in' expected")
	}
	c.want("do")
	c.loopBlock()
	c.closes("end", "for", line)
}

func (c *checker) local(line int) {
	c.advance()
	if c.accept("function") {
		c.want(tokenName)
		c.body(line)
		return
	}
	for c.want(tokenName); c.accept(","); c.want(tokenName) {
	}
	if c.accept("=") {
		c.list()
	}
}

// body passes parameters and statements of a function.
func (c *checker) body(line int) {
	c.want("(")
	vararg := false
	for more := !c.is(")"); more; more = c.accept(",") {
		if !c.is(tokenName) && !c.is("...") {
			c.wrong("<name> or '...' expected")
		}
		vararg = c.is("...")
		c.advance()
		if vararg {
			break
		}
	}
	c.want(")")
	c.vararg, c.loops = append(c.vararg, vararg), append(c.loops, 0)
	c.block()
	c.vararg, c.loops = c.vararg[:len(c.vararg)-1], c.loops[:len(c.loops)-1]
	c.closes("end", "function", line)
}
