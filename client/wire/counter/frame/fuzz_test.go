package frame_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/counter/frame"
)

// FuzzArguments decodes arbitrary bodies; what is accepted must come back after it was encoded.
func FuzzArguments(f *testing.F) {
	for _, body := range []string{
		"", "\x00\x01n", "\x00\x00\x00\x01\x00\x00\x00\x02\x00\x01n", "\x00\x00\x00\x01\x00\x01n", "\xff\xff", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		f.Add([]byte(body))
	}
	decoders := map[frame.Opcode]func([]byte) (frame.Args, bool){
		frame.Get: frame.DecodeGet, frame.Acquire: frame.DecodeAcquire, frame.Release: frame.DecodeRelease,
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for op, decode := range decoders {
			a, ok := decode(body)
			if !ok {
				continue
			}
			again := frame.AppendRequest(nil, op, 1, a)[frame.HeaderLen:]
			require.Equal(t, body[:len(again)], again)
			if op == frame.Acquire {
				require.LessOrEqual(t, a.Resources, a.Maximum)
			}
		}
	})
}

// FuzzReplies decodes arbitrary bodies of replies; what is accepted must come back after it was encoded.
func FuzzReplies(f *testing.F) {
	for _, body := range []string{"", "\x00\x01\x00\x01nv", "\x00\x00\x00\x01\x00\x00\x00\x02\x00\x01n", "\x00\x00\x00\x00", "\xff\xff\xff\xff"} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if stats, err := frame.DecodeStats(body); err == nil {
			require.Equal(t, string(body), string(frame.AppendStats(nil, 1, stats)[frame.HeaderLen:]))
		}
		if e, err := frame.DecodeEntry(body); err == nil {
			again := frame.AppendEntry(nil, 1, e.Current, e.Maximum, string(e.Name))[frame.HeaderLen:]
			require.Equal(t, body[:len(again)], again)
		}
		if n, err := frame.DecodeNumber(body); err == nil {
			require.Equal(t, body[:4], frame.AppendNumber(nil, frame.Get, 1, n)[frame.HeaderLen:])
		}
	})
}
