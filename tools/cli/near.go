package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Nearest returns the name that is like a misspelt one, empty if there is none within so many
// letters.
func Nearest(misspelt string, names []string, within int) string {
	best := ""
	for _, name := range names {
		if d := letters(misspelt, name); d <= within {
			best, within = name, d-1
		}
	}
	return best
}

// DidYouMean ends the error about a word that is unknown: with the name that is probably meant, or
// with nothing. A third of the letters may be wrong, and no more than three. dash stands before the
// names, as users write them.
func DidYouMean(misspelt, dash string, names []string) string {
	const farthest, share = 3, 3
	near := Nearest(misspelt, names, min(farthest, max(1, len(misspelt)/share)))
	if near == "" || len(misspelt) == 1 { // every short name is near to a single letter
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", dash, near)
}

// letters counts the letters that are wrong, missing, too many or swapped.
func letters(a, b string) int {
	before, last, row := []int(nil), []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			same := 1
			if a[i] == b[j] {
				same = 0
			}
			row[j+1] = min(last[j]+same, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// explained is an error of pflag in our words: options have one dash here.
func (f *Flags) explained(err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		var names []string
		f.VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden {
				names = append(names, flag.Name)
			}
		})
		return fmt.Errorf("there is no option -%s%s", name, DidYouMean(name, "-", names))
	case errors.As(err, &missing):
		return fmt.Errorf("-%s needs a value", missing.GetSpecifiedName())
	case errors.As(err, &invalid):
		return fmt.Errorf("-%s %s: %w", invalid.GetFlag().Name, invalid.GetValue(), errors.Unwrap(invalid))
	}
	return err
}
