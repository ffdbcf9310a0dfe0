package rebuild

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/filestore"
)

// BenchmarkBuild makes files of records of 400 bytes.
func BenchmarkBuild(b *testing.B) {
	value := make([]byte, 384)
	for _, sorted := range []bool{true, false} {
		b.Run(map[bool]string{true: "sorted", false: "any order"}[sorted], func(b *testing.B) {
			path := b.TempDir() + "/a.kct"
			f, err := New(path, Options{})
			require.NoError(b, err)
			start := time.Now()
			for i := range b.N {
				if sorted {
					err = f.Append(fmt.Appendf(nil, "key%013d", i), value)
				} else {
					err = f.Set(fmt.Appendf(nil, "key%013d", rand.IntN(1e12)), value)
				}
				require.NoError(b, err)
			}
			require.NoError(b, f.Commit(filestore.Meta{}))
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "records/s")
		})
	}
}
