package store

import "gotycoon/internal/pieces"

// LargeValue is the size from which on a Reader is asked.
const LargeValue = 64 << 10

// Reader is for whom a value is read. A value can be much larger than the request for it, so its reader is asked for room before the copy is
// made.
type Reader interface {
	// Large is called with the size of a large value for which there is no room yet, and returns how many of its bytes are to be copied. After an
	// error none is, and the error is that of Get. It may be called under locks of the store, and must be quick.
	Large(size int) (wanted int, err error)
}

// Append appends to dst what r wants of value.
func Append(dst, value []byte, r Reader) ([]byte, error) {
	if r != nil && len(value) >= LargeValue && cap(dst)-len(dst) < len(value) {
		wanted, err := r.Large(len(value))
		if err != nil {
			return dst, err
		}
		value = value[:wanted]
	}
	return pieces.Append(dst, value), nil
}
