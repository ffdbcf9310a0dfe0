package script

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// directive is one % of string.format.
type directive struct {
	minus, plus, blank, alt, zero bool
	width, precision              int // precision -1: none
	verb                          byte
}

// strFormat is string.format: C's printf with the arguments' types checked.
func (lib stringLib) format(l *lua.LState) int {
	format := checkText(l, 1)
	var out []byte
	for arg := 2; format != ""; {
		at := strings.IndexByte(format, '%')
		if at < 0 {
			out = append(out, format...)
			break
		}
		out, format = append(out, format[:at]...), format[at+1:]
		if strings.HasPrefix(format, "%") {
			out, format = append(out, '%'), format[1:]
			continue
		}
		var d directive
		d, format = parseDirective(l, format)
		before := len(out)
		out = lib.appendFormatted(l, out, d, arg)
		lib.leash.work(l, moveSteps+(len(out)-before)/comparedAtOnce)
		lib.allow(l, float64(len(out)))
		arg++
	}
	return lib.pushBuilt(l, out)
}

func parseDirective(l *lua.LState, format string) (d directive, rest string) {
	d.precision = -1
	i := 0
	for ; i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0; i++ {
		switch format[i] {
		case '-':
			d.minus = true
		case '+':
			d.plus = true
		case ' ':
			d.blank = true
		case '#':
			d.alt = true
		case '0':
			d.zero = true
		}
	}
	if i > 5 {
		l.RaiseError("invalid format (repeated flags)")
	}
	d.width, i = formatNumber(format, i)
	if i < len(format) && format[i] == '.' {
		d.precision, i = formatNumber(format, i+1)
	}
	switch {
	case d.width > 99 || d.precision > 99:
		l.RaiseError("invalid format (width or precision too long)")
	case i == len(format):
		l.RaiseError("invalid option '%%' to 'format'")
	}
	d.verb = format[i]
	return d, format[i+1:]
}

// formatNumber reads up to three digits: more than two are too many.
func formatNumber(format string, i int) (n, end int) {
	for end = i; end < len(format) && isDigit(format[end]) && end-i < 3; end++ {
		n = n*10 + int(format[end]-'0')
	}
	if end-i == 3 {
		n = 100
	}
	return n, end
}

func (lib stringLib) appendFormatted(l *lua.LState, out []byte, d directive, arg int) []byte {
	switch d.verb {
	case 'c':
		return d.pad(out, "", string([]byte{byte(checkInt(l, arg))}), false)
	case 'd', 'i':
		n := cInt64(checkNumber(l, arg))
		return d.integer(out, n < 0, strconv.FormatUint(magnitude(n), 10))
	case 'o', 'u', 'x', 'X':
		return d.unsigned(out, cUint64(checkNumber(l, arg)))
	case 'e', 'E', 'f', 'g', 'G':
		return d.float(out, checkNumber(l, arg))
	case 'q':
		t := checkText(l, arg)
		lib.allow(l, float64(len(out)+len(t)))
		return appendQuoted(out, t)
	case 's':
		t := checkText(l, arg)
		if d.precision >= 0 {
			t = t[:min(d.precision, len(t))]
		}
		lib.allow(l, float64(len(out)+len(t)))
		return d.pad(out, "", t, false)
	}
	l.RaiseError("invalid option '%%%c' to 'format'", d.verb)
	return nil
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// cUint64 cuts a number to 64 bits without a sign.
func cUint64(f float64) uint64 {
	if f >= 1<<63 && f < 1<<64 {
		return uint64(f)
	}
	return uint64(cInt64(f))
}

// integer appends a number with its sign.
func (d directive) integer(out []byte, negative bool, digits string) []byte {
	return d.pad(out, d.sign(negative), d.extend(digits), d.precision < 0)
}

func (d directive) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case d.plus:
		return "+"
	case d.blank:
		return " "
	}
	return ""
}

// extend adds zeros up to the precision.
func (d directive) extend(digits string) string {
	if d.precision == 0 && digits == "0" {
		return ""
	}
	return strings.Repeat("0", max(d.precision-len(digits), 0)) + digits
}

func (d directive) unsigned(out []byte, n uint64) []byte {
	digits, prefix := "", ""
	switch d.verb {
	case 'o':
		digits = strconv.FormatUint(n, 8)
		if d.alt && n != 0 {
			digits = "0" + digits
		}
	case 'u':
		digits = strconv.FormatUint(n, 10)
	case 'x', 'X':
		digits = strconv.FormatUint(n, 16)
		if d.alt && n != 0 {
			prefix = "0x"
		}
		if d.verb == 'X' {
			digits, prefix = strings.ToUpper(digits), strings.ToUpper(prefix)
		}
	}
	return d.pad(out, prefix, d.extend(digits), d.precision < 0)
}

func (d directive) float(out []byte, f float64) []byte {
	if t, special := specialText(f); special {
		t, negative := strings.CutPrefix(t, "-")
		if d.verb < 'a' {
			t = strings.ToUpper(t)
		}
		return d.pad(out, d.sign(negative), t, false)
	}
	precision := d.precision
	if precision < 0 {
		precision = 6
	}
	if precision == 0 && d.verb|0x20 == 'g' {
		precision = 1
	}
	t, negative := strings.CutPrefix(strconv.FormatFloat(f, d.verb, precision, 64), "-")
	return d.pad(out, d.sign(negative), t, true)
}

// pad appends sign and text with what is missing to the width.
func (d directive) pad(out []byte, sign, t string, zeros bool) []byte {
	missing := max(d.width-len(sign)-len(t), 0)
	switch {
	case d.minus:
		out = appendText(append(out, sign...), t)
		return append(out, strings.Repeat(" ", missing)...)
	case d.zero && zeros:
		out = append(append(out, sign...), strings.Repeat("0", missing)...)
		return append(out, t...)
	}
	out = append(out, strings.Repeat(" ", missing)...)
	return appendText(append(out, sign...), t)
}

// appendQuoted appends text as a literal of the language.
func appendQuoted(out []byte, t string) []byte {
	out = append(out, '"')
	for _, c := range []byte(t) {
		switch c {
		case '"', '\\', '\n':
			out = append(out, '\\', c)
		case '\r':
			out = append(out, `\r`...)
		case 0:
			out = append(out, `\000`...)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
