// Package pieces copies large values in pieces.
//
// Go cannot preempt a goroutine in the middle of a copy. The garbage collector has to stop all
// goroutines for a moment. So while a goroutine copies 250 MiB at once (80 ms, and several times as
// long if the system must provide the memory first), a collection that begins keeps every other
// goroutine waiting. Between two pieces the copying goroutine can be stopped, so the others wait
// for one piece at most.
package pieces

import "slices"

// Size is the size of a piece: 256 KiB, which take about 50 µs.
const Size = 256 << 10

// Copy is the built-in copy for values of any size. If dst and src overlap, dst must begin before
// src.
func Copy(dst, src []byte) (n int) {
	for len(src) > Size && len(dst) > Size {
		n += copy(dst[:Size], src)
		dst, src = dst[Size:], src[Size:]
	}
	return n + copy(dst, src)
}

// Append is the built-in append for values of any size.
func Append(dst, src []byte) []byte {
	if len(src) <= Size {
		return append(dst, src...)
	}
	at := len(dst)
	if cap(dst)-at < len(src) {
		dst = Grow(dst, len(src))
	}
	dst = dst[:at+len(src)]
	Copy(dst[at:], src)
	return dst
}

// Grow is slices.Grow for slices of any size. A slice over Size grows to the length needed and no
// more.
func Grow(dst []byte, n int) []byte {
	if len(dst)+n <= Size {
		return slices.Grow(dst, n)
	}
	if cap(dst)-len(dst) >= n {
		return dst
	}
	grown := make([]byte, len(dst), len(dst)+n)
	Copy(grown, dst)
	return grown
}

// Clone returns a copy of src.
func Clone(src []byte) []byte { return Append([]byte{}, src) }

// Each calls f for each piece of p, in order. It calls f at least once.
func Each(p []byte, f func(piece []byte) error) error {
	for len(p) > Size {
		if err := f(p[:Size]); err != nil {
			return err
		}
		p = p[Size:]
	}
	return f(p)
}
