package ulog

import "hash/crc32"

// joinCRC returns the checksum of two runs of bytes, of which the first has the checksum a, and the second, n bytes long, has b.
//
// A checksum is the remainder of a division of polynomials whose coefficients are bits. To append n bytes multiplies the first run by
// x to the power of 8n, and then adds the second. The inversions at both ends of a checksum cancel each other out.
func joinCRC(a, b uint32, n int) uint32 {
	power := uint32(1) << (31 - 8) // x to the power of 8, then of 16, 32, …
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			a = multiplyCRC(a, power)
		}
		power = multiplyCRC(power, power)
	}
	return a ^ b
}

// multiplyCRC multiplies polynomials modulo that of CRC-32C. The highest bit is the coefficient of 1, the lowest that of x to the
// power of 31.
func multiplyCRC(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 == 1 {
			product ^= b
		}
		b = b>>1 ^ b&1*crc32.Castagnoli // b times x
	}
	return product
}
