package db

import "math"

// Distance returns how many characters must be inserted, removed or replaced to turn one text into the other. Characters are
// bytes, or with utf those of UTF-8. Texts of which the work would be too much are as far apart as the longer one is long.
func Distance(a, b []byte, utf bool) int {
	n := int64(tooFar)
	var row []int
	if utf {
		n = distance(appendCharacters(nil, a), appendCharacters(nil, b), math.MaxInt64, &row)
	} else {
		n = distance(a, b, math.MaxInt64, &row)
	}
	if n == tooFar {
		return max(len(a), len(b))
	}
	return int(n)
}
