// Package pieces moves bytes of large values.
//
// Go cannot stop a goroutine in the middle of a copy. A collection of garbage has to stop all of them for a moment, so while one copies
// 250 MiB in one go (80 ms, and several times that where the system has to find the memory first) no goroutine of the process gets on.
// Between the pieces of a copy it can.
package pieces

import "slices"

// Size is the most that is copied in one go: 256 KiB, some 50 µs.
const Size = 256 << 10

// Copy is copy for values of any size. Where the two overlap dst must begin before src.
func Copy(dst, src []byte) (n int) {
	for len(src) > Size && len(dst) > Size {
		n += copy(dst[:Size], src)
		dst, src = dst[Size:], src[Size:]
	}
	return n + copy(dst, src)
}

// Append is append for values of any size.
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

// Grow is slices.Grow for slices of any size. What is large grows to what is needed and no more.
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

// Clone returns a copy.
func Clone(src []byte) []byte { return Append([]byte{}, src) }

// Each calls f for the pieces of p one after the other, once at least.
func Each(p []byte, f func(piece []byte) error) error {
	for len(p) > Size {
		if err := f(p[:Size]); err != nil {
			return err
		}
		p = p[Size:]
	}
	return f(p)
}
