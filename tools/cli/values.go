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

// size is the value of an option with a number of bytes.
type size struct{ set func(n int64) }

var errSize = errors.New("must be a size: a number of bytes, or a number with a unit as in 64m, 1.5g, 512 MiB or 2 GB (powers of 1024)")

// Set reads what a Number reads, and units as people write them: 2 GB, 2GiB and 2g are the same.
func (s size) Set(text string) error {
	digits := strings.ToLower(strings.TrimSpace(text))
	if short, ok := strings.CutSuffix(digits, "b"); ok {
		digits = short
		if i := len(digits) - 2; i >= 0 && digits[i+1] == 'i' && strings.IndexByte(units, digits[i]) >= 0 {
			digits = digits[:i+1]
		}
	}
	if i := len(digits) - 1; i > 0 && strings.IndexByte(units, digits[i]) >= 0 {
		digits = strings.TrimSpace(digits[:i]) + digits[i:]
	}
	var n int64
	if Int(&n).Set(strings.TrimSpace(digits)) != nil {
		return errSize
	}
	s.set(n)
	return nil
}

// String is empty: see Number.
func (size) String() string { return "" }

// Type stands for the value in the help text.
func (size) Type() string { return "number" }

// Size is the value of an option with a number of bytes; fractions are cut off.
func Size(p *int64) pflag.Value { return SizeTo(func(n int64) { *p = n }) }

// SizeTo is the value of an option whose number of bytes is given to set.
func SizeTo(set func(n int64)) pflag.Value { return size{set} }

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
