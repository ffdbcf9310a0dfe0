package script

import "encoding/binary"

// The hash functions of the original, of which scripts get 48 bits.
const (
	hashMask = 1<<48 - 1

	murmurSeed  = 19780211
	murmurPrime = 0xc6a4a7935bd1e995

	fnvStart = 14695981039346656037
	fnvPrime = 109951162811 // not the usual one
)

// murmur is MurmurHash64A, with the steps for 8 bytes in another order.
func murmur(p []byte) uint64 {
	h := murmurSeed ^ uint64(len(p))*murmurPrime
	for ; len(p) >= 8; p = p[8:] {
		n := binary.LittleEndian.Uint64(p) * murmurPrime
		n ^= n >> 47
		h = h*murmurPrime ^ n*murmurPrime
	}
	if len(p) > 0 {
		var tail [8]byte
		copy(tail[:], p)
		h = (h ^ binary.LittleEndian.Uint64(tail[:])) * murmurPrime
	}
	h = (h ^ h>>47) * murmurPrime
	return h ^ h>>47
}

func fnv(p []byte) uint64 {
	h := uint64(fnvStart)
	for _, c := range p {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}
