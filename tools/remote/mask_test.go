package remote_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// importFile is the file of the recording: pairs, a line with three columns, an empty one, a key
// that does not exist and a line without an end.
func importFile() string {
	var b strings.Builder
	for i := range 105 {
		fmt.Fprintf(&b, "bulk%03d\tv%d\n", i, i)
	}
	return b.String() + "three\tcolumns\there\n\nnosuchkey\nlast\tno newline"
}

// epoch matches a time of our days in seconds.
var epoch = regexp.MustCompile(`\b1[789]\d{8}\b`)

// maskExpiry replaces the times in have that are within some days of now by the times in want.
func maskExpiry(want, have string) string {
	recorded := epoch.FindAllString(want, -1)
	i := -1
	return epoch.ReplaceAllStringFunc(have, func(text string) string {
		i++
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || i >= len(recorded) || time.Until(time.Unix(n, 0)).Abs() > 48*time.Hour {
			return text
		}
		return recorded[i]
	})
}
