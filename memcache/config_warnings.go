package memcache

import (
	"fmt"
	"strings"
)

// letters are the options that SetOptions knows.
const letters = "fmqr"

// UnknownOptions returns the letters that stand for no option.
func UnknownOptions(options string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return -1
		}
		return r
	}, options)
}

// Warnings returns what an expression of -plex says that has no effect, a text for each. The
// service starts all the same, see ParseConfig.
func Warnings(expr string) (texts []string) {
	warn := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	for field := range strings.SplitSeq(expr, "#") {
		name, value, found := strings.Cut(field, "=")
		if field == "" {
			continue
		}
		if !found {
			warn("%s has no value, and no effect: write %s=VALUE", field, field)
			continue
		}
		switch name {
		case "host":
		case "port", "th", "thnum":
			if positive(value, 0) == 0 {
				warn("%s is no number above 0, and the default counts", field)
			}
		case "tout", "timeout":
			if leadingFloat(value) < 1 {
				warn("%s: it is at least 1 second, and the default counts", field)
			}
		case "qtout", "qtimeout":
			if leadingFloat(value) <= 0 {
				warn("%s: it is above 0 seconds, and the default counts", field)
			}
		case "opts", "options":
			if strange := UnknownOptions(value); strange != "" {
				warn("%s: there are no options %q", field, strange)
			}
		default:
			warn("there is no %q: host, port, tout, th, opts and qtout mean something", name)
		}
	}
	return texts
}
