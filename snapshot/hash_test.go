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
