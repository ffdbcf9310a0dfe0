package memcache

import (
	"encoding/binary"

	"gotycoon/db/record"
)

// item is a record in memcached's terms.
type item struct {
	key     []byte
	data    []byte
	flags   uint32
	xt      int64  // absolute expiration time in seconds, record.MaxXT for never
	version uint64 // 0 if it was not asked for
}

// flagBytes is the length of the flags behind a value.
const flagBytes = 4

// encode appends the stored form of a value: the data and, with Config.Flags, the flags as a
// big-endian number.
func (b *base) encode(dst, data []byte, flags uint32) []byte {
	dst = append(dst, data...)
	if b.s.opts.Flags {
		dst = binary.BigEndian.AppendUint32(dst, flags)
	}
	return dst
}

// decode splits a stored value. A value too short for flags has the flags 0.
func (b *base) decode(stored []byte) (data []byte, flags uint32) {
	n := len(stored) - flagBytes
	if !b.s.opts.Flags || n < 0 {
		return stored, 0
	}
	return stored[:n], binary.BigEndian.Uint32(stored[n:])
}

// expiry converts a client's expiration time: a number of seconds from now, or a Unix time if it is
// too large for that.
func (b *base) expiry(n int64) record.XT {
	const longest = 1 << 24
	switch {
	case n == 0:
		return record.Never
	case n < 0 && b.modern:
		return -1 // expired already
	case n < 0:
		return record.Never
	case n <= longest:
		return record.XT(n)
	}
	return record.XT(-n)
}

// ttl returns the seconds until an expiration time, -1 for never.
func (b *base) ttl(xt int64) int64 {
	if xt == record.MaxXT {
		return -1
	}
	return max(0, xt-b.db.Now().Unix())
}
