package expr

import (
	"fmt"
	"slices"
	"strings"
)

// Warnings returns what an expression says that has no effect, a text for each: parameters that
// nobody knows, values that mean nothing, and limits that this kind of database does not heed. A
// server opens the database all the same, as the original does. The expression can be parsed.
func Warnings(s string) (texts []string) {
	e, err := Parse(s)
	if err != nil {
		return nil
	}
	_, params, _ := strings.Cut(s, "#")
	if params == "" {
		return nil
	}
	warn := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	for param := range strings.SplitSeq(params, "#") {
		key, value, found := strings.Cut(param, "=")
		value, rest, more := strings.Cut(value, "=")
		switch {
		case param == "":
		case !found:
			warn("#%s has no value, and no effect: write #%s=VALUE", param, param)
		case more:
			warn("#%s: what follows the second = has no effect: %q", key, rest)
		default:
			if text := e.warning(key, value); text != "" {
				warn("#%s=%s: %s", key, value, text)
			}
		}
	}
	return texts
}

// warning returns why a parameter has no effect; empty: it has one.
func (e *Expr) warning(key, value string) string {
	p := newParams()
	field, known := p.fields()[key]
	switch {
	case key == "type":
		if kindOfType(value) == 0 {
			return "there is no such type of database; the name of the file decides"
		}
		return ""
	case key == "ktopts" || key == "ktoptions":
		return strange(value, "p")
	case key == "lww":
		if !slices.Contains([]string{"true", "1", "false", "0"}, value) {
			return "is true or false"
		}
		return ""
	case !known:
		return "there is no such parameter. Those with an effect are ktopts, ktcapcnt, ktcapsiz, capcnt, capsiz, opts, rcomp, syncrep, lww and type"
	}
	switch field.(type) {
	case *int64:
		return e.wrongNumber(field == any(&p.CapCnt) || field == any(&p.CapSiz), value)
	case *Opts:
		return strange(value, "slc")
	case *Order:
		if parseOrder(value, -1) == -1 {
			return "there is no such order: lex, dec, lexdesc or decdesc"
		}
	}
	return ""
}

// wrongNumber returns why a number has no effect. caches says that only a cache heeds the
// parameter.
func (e *Expr) wrongNumber(caches bool, value string) string {
	digits := strings.TrimLeft(skipBlanks(value), "+-")
	switch {
	case digits == "" || !isDecimal(digits[0]) && digits[0] != '.':
		return "is no number, and counts as 0"
	case caches && e.Kind != Cache:
		return "only a cache (*) keeps within it; ktcapcnt and ktcapsiz limit any database"
	}
	return strangeUnit(digits)
}

// strangeUnit returns what is wrong behind the digits of a number: it is a unit, or nothing.
func strangeUnit(number string) string {
	unit := skipBlanks(strings.TrimLeft(number, "0123456789."))
	if unit == "" {
		return ""
	}
	if unitShift(unit) == 0 {
		return fmt.Sprintf("%q is no unit, and has no effect: k, m, g, t, p and e are units", unit)
	}
	if !slices.Contains([]string{"", "b", "ib"}, strings.ToLower(unit[1:])) {
		return fmt.Sprintf("what follows the unit %s has no effect: %q", unit[:1], unit[1:])
	}
	return ""
}

// strange returns which letters of a value are none of those that mean something.
func strange(value, letters string) string {
	rest := strings.Trim(value, letters)
	if rest == "" {
		return ""
	}
	return fmt.Sprintf("of the letters only %q mean something", letters)
}
