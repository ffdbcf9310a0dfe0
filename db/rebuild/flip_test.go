package rebuild

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/filestore"
)

// Whatever byte of a file changes, in a value, a key, or what holds the pages together: what is
// saved is exactly what was written, or the file's checksum says that it may not be. Check sees the
// same.
func TestAFlippedByteIsTold(t *testing.T) {
	data, want := used(t, 400)
	sound, _ := salvaged(t, data)
	rnd := rand.New(rand.NewPCG(9, 10))
	exact, told := 0, 0
	for range 1500 {
		bad := bytes.Clone(data)
		at := rnd.IntN(len(bad))
		if rnd.IntN(3) == 0 { // where pages begin
			at = min(at/4096*4096+rnd.IntN(100), len(bad)-1)
		}
		bad[at] ^= byte(1 + rnd.IntN(255))
		s, got := salvaged(t, bad)
		var sum uint64
		for k, v := range got {
			sum += filestore.RecordSum([]byte(k), []byte(v))
		}
		if s.Meta.Format == 0 || s.Stale || !s.Meta.Summed || sum != s.Meta.Sum || int64(len(got)) != s.Meta.Count {
			told++
			continue
		}
		exact++
		require.True(t, maps.Equal(want, got), "byte %d", at)
		require.Equal(t, sound.Meta, s.Meta, "byte %d", at)
		r, err := check(bytes.NewReader(bad), int64(len(bad)), nil)
		require.NoError(t, err)
		if r.Found == 0 {
			require.Equal(t, sum, r.Tree.Sum)
		}
	}
	require.Greater(t, exact, 200)
	require.Greater(t, told, 200)
}

// A record that was damaged in the file below stays told of in the file that is made over it.
func TestDamageIsNotVouchedFor(t *testing.T) {
	path := t.TempDir() + "/a.kct"
	b, err := New(path, Options{})
	require.NoError(t, err)
	require.NoError(t, b.Append([]byte("a"), []byte("\xff\xff\xff\xff\xffsound")))
	require.NoError(t, b.Append([]byte("b"), []byte("\xff\xff\xff\xff\xffsound")))
	require.NoError(t, b.Commit(filestore.Meta{ID: filestore.NewID(), Clean: true}))
	damage(t, path, "sound", "saund")
	f, err := Open(path, true, true)
	require.NoError(t, err)
	b, err = New(path, Options{Replace: true})
	require.NoError(t, err)
	b.Over(f)
	require.NoError(t, b.Set([]byte("c"), []byte("\xff\xff\xff\xff\xffnew")))
	require.NoError(t, b.Commit(f.Meta()))
	require.NoError(t, f.Close())
	r, err := Check(path, true, nil)
	require.NoError(t, err)
	require.Equal(t, 1, r.Found)
	require.ErrorContains(t, &r.Damage[0], "checksum of the records")
}

// damage replaces the first occurrence of a text in a file by another one of the same length.
func damage(t *testing.T, path, from, to string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.Index(data, []byte(from))
	require.Positive(t, at)
	copy(data[at:], to)
	require.NoError(t, os.WriteFile(path, data, 0o600))
}
