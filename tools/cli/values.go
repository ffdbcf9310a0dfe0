package cli

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Number is the value of an option that takes a decimal number, a fraction allowed, which may end
// in a unit: k m g t p e are powers of 1024. The function takes the number. It implements
// pflag.Value.
type Number func(n float64)

const units = "kmgtpe"

var errNumber = errors.New("must be a number")

// Set reads the number.
func (set Number) Set(text string) error {
	factor := 1.0
	digits := strings.ToLower(text)
	if digits != "" {
		if i := strings.IndexByte(units, digits[len(digits)-1]); i >= 0 {
			factor = math.Pow(1024, float64(i+1))
			digits = digits[:len(digits)-1]
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsNaN(n) || math.Abs(n*factor) >= 1<<63 {
		return errNumber
	}
	set(n * factor)
	return nil
}

// String is empty: defaults are part of the help text where they matter.
func (Number) String() string { return "" }

// Type stands for the value in the help text.
func (Number) Type() string { return "number" }

// exact is a Number whose digits all count, as in time stamps: a float would round them.
type exact struct{ p *int64 }

// Set reads the number, as a whole number if it is one.
func (e exact) Set(text string) error {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		*e.p = n
		return nil
	}
	return Number(func(n float64) { *e.p = int64(n) }).Set(text)
}

// String is empty: see Number.
func (exact) String() string { return "" }

// Type stands for the value in the help text.
func (exact) Type() string { return "number" }

// Int is the value of an option with a whole number; fractions are cut off.
func Int(p *int64) pflag.Value {
	return exact{p}
}

// Duration is the value of an option with a length of time in seconds.
func Duration(p *time.Duration) Number {
	return func(n float64) {
		const longest = 1 << 62
		*p = time.Duration(max(-longest, min(longest, n*float64(time.Second))))
	}
}

// pairSeparator stands between the two values of an option, where arguments cannot have it.
const pairSeparator = "\x00"

// pairs is the value of an option that takes a name and a value, and may be given more than once.
type pairs struct{ list *[][2]string }

// Pairs defines an option that takes two arguments, a name and a value, any number of times: -ah
// Accept text/plain.
func (f *Flags) Pairs(name, help string) *[][2]string {
	list := new([][2]string)
	f.Var(pairs{list}, name, help)
	return list
}

// Set adds a pair.
func (p pairs) Set(text string) error {
	name, value, ok := strings.Cut(text, pairSeparator)
	if !ok {
		return errors.New("must have a name and a value")
	}
	*p.list = append(*p.list, [2]string{name, value})
	return nil
}

// String is empty: there is no default.
func (pairs) String() string { return "" }

// Type stands for the values in the help text.
func (pairs) Type() string { return "name value" }

// valuesOf returns how many arguments an option takes.
func valuesOf(flag *pflag.Flag) int {
	if _, ok := flag.Value.(pairs); ok {
		return 2
	}
	return 1
}
