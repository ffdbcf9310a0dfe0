package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// typical returns a function that makes records of 100 bytes, half of which is text that repeats.
func typical() func(i int) (key, value []byte) {
	rng := rand.New(rand.NewPCG(1, 1))
	key, value := make([]byte, 0, 16), make([]byte, 0, 90)
	return func(i int) ([]byte, []byte) {
		key = fmt.Appendf(key[:0], "user:%09d", i)
		value = append(value[:0], "\xff\xff\xff\xff\xff{\"name\":\"somebody\",\"city\":\"Berlin\",\"id\":\""...)
		for range 5 {
			value = binary.BigEndian.AppendUint64(value, rng.Uint64())
		}
		return key, value
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, c := range every() {
		b.Run(c.String(), func(b *testing.B) {
			record := typical()
			out := &counter{r: nil}
			w, err := NewWriter(countWriter{out}, Header{Compressor: c})
			require.NoError(b, err)
			b.ReportAllocs()
			for i := range b.N {
				require.NoError(b, w.Add(record(i)))
			}
			require.NoError(b, w.Close())
			b.ReportMetric(float64(out.n)/float64(b.N), "bytes/record")
		})
	}
}

type countWriter struct{ *counter }

func (w countWriter) Write(p []byte) (int, error) {
	w.n += int64(len(p))
	return len(p), nil
}

func BenchmarkRead(b *testing.B) {
	for _, c := range every() {
		b.Run(c.String(), func(b *testing.B) {
			const n = 100_000
			record := typical()
			var data bytes.Buffer
			w, err := NewWriter(&data, Header{Compressor: c})
			require.NoError(b, err)
			for i := range n {
				require.NoError(b, w.Add(record(i)))
			}
			require.NoError(b, w.Close())
			b.ResetTimer()
			b.ReportAllocs()
			for left := b.N; left > 0; left -= n {
				r, err := NewReader(bytes.NewReader(data.Bytes()))
				require.NoError(b, err)
				for range min(n, left) {
					_, _, err := r.Next()
					require.NoError(b, err)
				}
				if left > n {
					_, _, err = r.Next()
					require.ErrorIs(b, err, io.EOF)
				}
			}
		})
	}
}
