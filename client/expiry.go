package client

import (
	"math"
	"strconv"
	"time"
)

// Expiry says when a record expires. The zero value is Never; In and At return others.
//
// The number is a number of seconds from now or, if negative, a Unix time in seconds, as the
// protocols have it. Their 0, a record that expires at once, has no place here, where 0 is what a
// program gets that says nothing: In(-1) is a time that is over.
type Expiry int64

// Never is the expiry of a record that does not expire.
const Never Expiry = 0

// In returns the expiry of a record that lives for d, rounded up to whole seconds. In(0) is Never.
// If d is negative, the record expires at once.
func In(d time.Duration) Expiry {
	switch {
	case d == 0:
		return Never
	case d < 0:
		return Expiry(-1) // a second after 1970 began
	}
	return Expiry((d-1)/time.Second + 1)
}

// At returns the expiry of a record that expires at t, rounded up to whole seconds. The zero time
// means Never. If t is over, the record expires at once.
func At(t time.Time) Expiry {
	if t.IsZero() {
		return Never
	}
	s := t.Unix()
	if t.Nanosecond() > 0 {
		s++
	}
	return Expiry(-max(1, s)) // at most -1: 0 and more would be seconds from now
}

// param returns the parameter of a call.
func (e Expiry) param() []string {
	if e == Never {
		return nil
	}
	return []string{"xt", strconv.FormatInt(int64(e), 10)}
}

// binary returns the number in a binary request.
func (e Expiry) binary() int64 {
	if e == Never {
		return math.MaxInt64
	}
	return int64(e)
}

// expiresAt returns the expiration time in a binary reply or in the stored form of a value.
func expiresAt(xt int64) time.Time {
	const never = 1<<40 - 1
	if xt >= never {
		return time.Time{}
	}
	return time.Unix(xt, 0)
}
