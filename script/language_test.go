package script_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the reference interpreter prints for chunks where the one used here would differ without our help.
func TestLanguage(t *testing.T) {
	h := start(t, evaluator)
	for code, want := range map[string]string{
		`return 1e15 .. "|" .. 1/3 .. "|" .. 2^53`:         "1e+15|0.33333333333333|9.007199254741e+15",
		`return 0/0 ~= 0/0, 1/0, -1/0, math.huge`:          "true inf -inf inf",
		`return 010 + 1, "010" + 1, "0x10" + 0, "1e1" * 1`: "11 11 16 10",
		`return tonumber("1e3"), tonumber("0x"), tonumber("ff", 16), tonumber("zz", 36), tonumber("1_0"), tonumber("8", 8)`: "1000 nil 255 1295 nil nil",
		`return ("abc"):upper(), ("ÄB\255"):lower()`:                                                                               "ABC Äb\xff",
		`return string.format("%5s|%-5s|%05d|%x|%q|%c|%g|%i", "é", "b", -42, 255, "a\"b", 65, 0.1, 3)`:                             "   é|b    |-0042|ff|\"a\\\"b\"|A|0.1|3",
		`return string.format("%.3s|%10.4f|%+d|%%|%e", "abcdef", math.pi, 5, 12345.678)`:                                           "abc|    3.1416|+5|%|1.234568e+04",
		`return string.format("%d")`:                                                                                               "chunk:1: bad argument #2 to 'format' (number expected, got no value)",
		`return string.format("%y", 1)`:                                                                                            "chunk:1: invalid option '%y' to 'format'",
		`return string.gsub("THE (quick) fox", "%f[%a]%a+", "X")`:                                                                  "X (X) X 3",
		`return string.find("abc [x] def", "%b[]")`:                                                                                "5 7",
		`return string.gsub("hello", "", "-")`:                                                                                     "-h-e-l-l-o- 6",
		`return string.gsub("abc", "(a)(b)(c)", "%3%2%1%0")`:                                                                       "cbaabc 1",
		`return string.gsub("$name is $what", "%$(%w+)", {name="x"})`:                                                              "x is $what 2",
		`local t = {} for k, v in string.gmatch("a=1, b=2", "(%w+)=(%w+)") do t[#t+1] = k .. v end return table.concat(t, ",")`:    "a1,b2",
		`return string.match("  trim  ", "^%s*(.-)%s*$"), string.match("key=val", "()=()")`:                                        "trim 4 5",
		`return string.find("a+b", "+", 1, true), string.find("abc", "b", -1), string.find("", "")`:                                "2 nil 1 0",
		`return string.rep("ab", 3), ("x"):byte(-1), string.char(72, 105), ("abc"):sub(-2), #("a\0b")`:                             "ababab 120 Hi bc 3",
		`return select("#", unpack({}, 1, 300)), select(-1, 1, 2, 3)`:                                                              "300 3",
		`local t = {5, 3, 1} table.sort(t, function(a, b) return a < b end) return table.concat(t, ",")`:                           "1,3,5",
		`local t = {} table.insert(t, "a") table.insert(t, 1, "b") return table.concat(t), table.remove(t), #t`:                    "ba a 1",
		`local s = "" for i = 1, 3 do s = i .. ":" .. s end return s`:                                                              "3:2:1:",
		`return (function(...) return select("#", ...) end)(nil, nil)`:                                                             "2",
		`local mt = {__concat = function(a, b) return "joined" end} return setmetatable({}, mt) .. "x", 1 .. setmetatable({}, mt)`: "joined joined",
		`local mt = {__add = function(a, b) return "sum" end} return "1" + setmetatable({}, mt), setmetatable({}, mt) + 1`:         "sum sum",
		`local mt = {__tostring = function() return "T" end} return tostring(setmetatable({}, mt))`:                                "T",
		`local x = 1 local function f() x = 2 end pcall(error) f() return x`:                                                       "2",
		`local g pcall(function() local y = 5 g = function() return y end error("e") end) return g()`:                              "5",
		`local x = 1 local function f() x = 2 end xpcall(error, function(m) return m end) f() return x`:                            "2",
		`return xpcall(function() local t = nil; return t.x end, function(m) return "H:" .. m end)`:                                "false H:chunk:1: attempt to index local 't' (a nil value)",
		`local x = 1 db:accept("a", function() x = 2 error("e") end) return x`:                                                     "2",
		`local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end return f(15000)`:                                  "15000",
		`local function f() return pcall(f) end return (f())`:                                                                      "true",
		`return pcall(error, {1})`:                                       "false table",
		`return getmetatable(1), getmetatable(nil), getmetatable(print)`: "nil nil nil",
		`local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) error("x" .. b) end) local _, x = coroutine.resume(co, 1) local ok, e = coroutine.resume(co, 5) return x, ok, e, coroutine.status(co), coroutine.resume(co)`: "2 false chunk:1: x5 dead false cannot resume dead coroutine",
		`local f = coroutine.wrap(function() for i = 1, 2 do coroutine.yield(i) end end) return f(), f()`:                                                                                                                                      "1 2",
	} {
		got := h.eval(code)
		if code == `return pcall(error, {1})` {
			require.Contains(t, got, want)
			continue
		}
		assert.Equal(t, want, got, code)
	}
}

func TestMessages(t *testing.T) {
	h := start(t, evaluator)
	for code, want := range map[string]string{
		`local x; return x.y`:       "chunk:1: attempt to index local 'x' (a nil value)",
		`return nosuch.y`:           "chunk:1: attempt to index global 'nosuch' (a nil value)",
		`nosuch()`:                  "chunk:1: attempt to call global 'nosuch' (a nil value)",
		"local t = {}\nt.f()":       "chunk:2: attempt to call field 'f' (a nil value)",
		`local t = {} t:m()`:        "chunk:1: attempt to call method 'm' (a nil value)",
		`local t = {} t()`:          "chunk:1: attempt to call local 't' (a table value)",
		`local a = {} return a + 1`: "chunk:1: attempt to perform arithmetic on local 'a' (a table value)",
		`return 1 + nil`:            "chunk:1: attempt to perform arithmetic on a nil value",
		`return "a" + 1`:            "chunk:1: attempt to perform arithmetic on a string value",
		`return -{}`:                "chunk:1: attempt to perform arithmetic on a table value",
		`local u return "a" .. u`:   "chunk:1: attempt to concatenate local 'u' (a nil value)",
		`local u; local function f() return u.x end f()`: "chunk:1: attempt to index upvalue 'u' (a nil value)",
		`return #nil`:                               "chunk:1: attempt to get length of a nil value",
		`return 1 < "2"`:                            "chunk:1: attempt to compare number with string",
		`return {} < {}`:                            "chunk:1: attempt to compare two table values",
		`for i = 1, {} do end`:                      "chunk:1: 'for' limit must be a number",
		`error("m", 0)`:                             "m",
		`error("m")`:                                "chunk:1: m",
		`return ("x"):rep({})`:                      "bad argument #2 to 'rep' (number expected, got table)",
		`return setmetatable(1, {})`:                "bad argument #1 to 'setmetatable' (table expected, got number)",
		`local function f() return 1 + f() end f()`: "stack overflow",
		`return string.rep("x", 2^31)`:              "not enough memory",
		`return string.match("x", "[a")`:            "malformed pattern (missing ']')",
		`return db.get()`:                           "db_get: invalid arguments",
	} {
		assert.Contains(t, h.eval(code), want, code)
	}
}

func TestSyntaxErrors(t *testing.T) {
	h := start(t, evaluator)
	for code, want := range map[string]string{
		`this is not lua`:             "chunk:1: '=' expected near 'is'",
		`x = `:                        "chunk:1: unexpected symbol near '<eof>'",
		"if x then\n\nfoo()":          "chunk:3: 'end' expected (to close 'if' at line 1) near '<eof>'",
		`return 1 +`:                  "chunk:1: unexpected symbol near '<eof>'",
		`f(`:                          "chunk:1: unexpected symbol near '<eof>'",
		`for i do end`:                "chunk:1: '=' or 'in' expected near 'do'",
		`local 1 = 2`:                 "chunk:1: <name> expected near '1'",
		`x = "abc`:                    "chunk:1: unfinished string near '<eof>'",
		"x = \"abc\ny\"":              "chunk:1: unfinished string near '\"abc'",
		`x = [[abc`:                   "chunk:1: unfinished long string near '<eof>'",
		`break`:                       "chunk:1: no loop to break near '<eof>'",
		`x = 3x`:                      "chunk:1: malformed number near '3x'",
		`function f() return ... end`: "chunk:1: cannot use '...' outside a vararg function near '...'",
		`a.b`:                         "chunk:1: '=' expected near '<eof>'",
		`(a)`:                         "chunk:1: syntax error near '<eof>'",
		`end`:                         "chunk:1: '<eof>' expected near 'end'",
		`x = }`:                       "chunk:1: unexpected symbol near '}'",
		`t = {1, 2`:                   "chunk:1: '}' expected near '<eof>'",
		"f\n(1)":                      "chunk:2: ambiguous syntax (function call x new statement) near '('",
		`x = #!y`:                     "chunk:1: unexpected symbol near '!'",
	} {
		assert.Equal(t, want, h.eval(code), code)
	}
	require.Contains(t, h.eval(`return loadstring("x = " .. string.rep("(", 1000) .. "1")`), "chunk has too many syntax levels")
	require.Equal(t, `[string "x ="]:1: unexpected symbol near '<eof>'`, h.eval(`return select(2, loadstring("x ="))`))
	require.Equal(t, `[string "x = 1..."]:2: '=' expected near '<eof>'`, h.eval(`return select(2, loadstring("x = 1\ny"))`))
}
