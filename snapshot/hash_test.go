package snapshot

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// The constants are the low halves of the hash of what the compressors make of the magic bytes.
func TestCheckValues(t *testing.T) {
	for blob, want := range map[string]uint32{
		"f30e090ee662000000":   checkZlib,
		"174b5453530a00110000": checkLZO,
		"fd377a585a000000ff12d9410200210116000000742fe5a30100054b5453530a0000000000011606c9a57dd506729e7a010000000000595a": checkLZMA,
		hex.EncodeToString([]byte("x\x00" + magic)): checkBareLZMA,
		hex.EncodeToString([]byte("o\x00" + magic)): checkBareLZO,
		hex.EncodeToString([]byte("z\x00" + magic)): checkBareZlib,
		hex.EncodeToString([]byte(magic + "zstd")):  checkZstd,
		hex.EncodeToString([]byte(magic + "s2")):    checkS2,
	} {
		b, err := hex.DecodeString(blob)
		require.NoError(t, err)
		require.Equal(t, want, uint32(hash(b)), "%08x %q", uint32(hash(b)), b)
	}
}

// hash is the 64-bit hash whose low half is the original's check value: MurmurHash64A with the
// original's seed.
func hash(b []byte) uint64 {
	const m, seed, shift = 0xc6a4a7935bd1e995, 19780211, 47
	h := uint64(seed) ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := littleEndian(b[:8]) * m
		k ^= k >> shift
		h = h*m ^ k*m
	}
	if len(b) > 0 {
		h = (h ^ littleEndian(b)) * m
	}
	h ^= h >> shift
	h *= m
	return h ^ h>>shift
}

func littleEndian(b []byte) (n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n
}
