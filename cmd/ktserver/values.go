package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gotycoon/tools/cli"
)

// textValue is the value of an option with a text.
func textValue(p *string) pflag.Value {
	var f pflag.FlagSet
	f.StringVar(p, "text", *p, "")
	return f.Lookup("text").Value
}

// switchValue is the value of an option without an argument.
func switchValue(p *bool) pflag.Value {
	var f pflag.FlagSet
	f.BoolVar(p, "switch", *p, "")
	return f.Lookup("switch").Value
}

// integer is the value of an option with a number of ordinary size.
func integer(p *int) cli.Number { return func(n float64) { *p = int(n) } }

// fraction is the value of an option with a number that need not be whole.
func fraction(p *float64) cli.Number { return func(n float64) { *p = n } }

// milliseconds is the value of an option with a short length of time.
func milliseconds(p *time.Duration) cli.Number {
	const longest = 1 << 62
	return func(n float64) {
		*p = time.Duration(math.Round(max(-longest, min(longest, n*float64(time.Millisecond)))))
	}
}

// limit is the value of an option with a size, where 0 means unlimited. In server.Config a number
// below 0 does.
func limit(p *int64) pflag.Value {
	return cli.SizeTo(func(n int64) {
		*p = n
		if n <= 0 {
			*p = math.MinInt64
		}
	})
}

// alias is an option without an argument that gives another one a value.
type alias struct {
	o           *options
	name, value string
}

// Set implements pflag.Value.
func (a alias) Set(text string) error {
	yes, err := strconv.ParseBool(text)
	if err != nil || !yes {
		return err
	}
	return a.o.flags.Set(a.name, a.value)
}

// String implements pflag.Value.
func (alias) String() string { return "" }

// Type implements pflag.Value: the help text shows no argument.
func (alias) Type() string { return "bool" }

// oneOf is an option with one of several words.
type oneOf[T any] struct {
	p     *T
	words []string
	means []T // what each of them stands for
}

// Set implements pflag.Value.
func (w oneOf[T]) Set(text string) error {
	i := slices.Index(w.words, text)
	if i < 0 {
		return fmt.Errorf("must be one of %s", strings.Join(w.words, ", "))
	}
	*w.p = w.means[i]
	return nil
}

// String implements pflag.Value: the default is part of the help text.
func (oneOf[T]) String() string { return "" }

// Type implements pflag.Value.
func (oneOf[T]) Type() string { return "word" }

// ignored is an option without an argument that changes nothing: the server always does what it
// asks for.
type ignored struct{}

// Set implements pflag.Value.
func (ignored) Set(text string) error {
	_, err := strconv.ParseBool(text)
	return err
}

// String implements pflag.Value.
func (ignored) String() string { return "" }

// Type implements pflag.Value: the help text shows no argument.
func (ignored) Type() string { return "bool" }

var errSpan = errors.New("must be a number of seconds, or a time with a unit: 0.01, 10ms, 2s, 36h, 7d")

// span is the value of an option with a length of time: a number of seconds, or with units as in
// 1m30s, or a number of days as in 7d.
type span struct{ p *time.Duration }

// Set implements pflag.Value.
func (s span) Set(text string) error {
	if d, err := time.ParseDuration(text); err == nil {
		*s.p = d
		return nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		const hours, longest = 24, 100 * 365
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(math.Abs(n) <= longest) { // NaN too
			return errSpan
		}
		*s.p = time.Duration(n * hours * float64(time.Hour))
		return nil
	}
	if cli.Duration(s.p).Set(text) != nil {
		return errSpan
	}
	return nil
}

// String implements pflag.Value: there is no default.
func (span) String() string { return "" }

// Type implements pflag.Value.
func (span) Type() string { return "time" }
