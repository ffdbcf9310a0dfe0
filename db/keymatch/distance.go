package keymatch

import (
	"gotycoon/db/owed"
	"math"
)

// Distance returns how many characters must be inserted, removed or replaced to turn one text into the other. Characters are
// bytes, or with utf those of UTF-8. Texts of which the work would be too much are as far apart as the longer one is long. The error is
// that of heed.
func Distance(heed owed.Heed, a, b []byte, utf bool) (int, error) {
	h := owed.NewHeeding(heed)
	n := int64(TooFar)
	var row []int
	if utf {
		n = distance(h, appendCharacters(nil, h, a), appendCharacters(nil, h, b), math.MaxInt64, &row)
	} else {
		n = distance(h, a, b, math.MaxInt64, &row)
	}
	if n == TooFar {
		return max(len(a), len(b)), h.Err()
	}
	return int(n), h.Err()
}
