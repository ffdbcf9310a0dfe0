package filestore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"gotycoon/db/filestore/run"
	"gotycoon/ulog/update"
)

// mirrored makes a file of packed records whose lookups are mirrored, and returns its keys.
func mirrored(t *testing.T, records int) (s *Store, path string, keys []string) {
	t.Helper()
	s, path = quiet(t, Options{Limit: 1 << 30, Memory: 1 << 10})
	random := rand.New(rand.NewPCG(1, 2))
	var ups []update.Update
	for i := range records {
		keys = append(keys, fmt.Sprintf("%016x", random.Uint64()))
		ups = append(ups, set(keys[i], strings.Repeat(keys[i], 10)))
	}
	s.Apply(1, ups)
	require.NoError(t, s.Merge())
	s.tellDone() // as after a checkpoint in the background
	require.NotNil(t, s.reading.Load().mirror.Load(), "the file is larger than memory")
	return s, path, keys
}

// firstBlocks visits the first block of each leaf of packed records; at is where in the file it is.
func firstBlocks(t *testing.T, s *Store, visit func(last, raw []byte, at int64)) {
	t.Helper()
	require.NoError(t, s.file.View(func(tx *bolt.Tx) error {
		start := pagesOf(tx)
		leaf := int64(-1)
		c := bottomOf(tx).packed.Cursor()
		for last, raw := c.First(); last != nil; last, raw = c.Next() {
			at := start(raw)
			if page := at / int64(os.Getpagesize()); page != leaf {
				leaf = page
				visit(last, raw, at)
			}
		}
		return nil
	}))
}

// A damaged block makes lookups of its own keys fail, and of no others: neither an error nor a wrong
// answer is taken from a block in which a lookup began on a guess.
func TestADamagedBlockHarmsNoOtherKeys(t *testing.T) {
	s, path, keys := mirrored(t, 4000)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	type block struct {
		last, raw string
		at        int64
	}
	var blocks []block
	firstBlocks(t, s, func(last, raw []byte, at int64) {
		require.EqualValues(t, run.PackedKey, last[0])
		blocks = append(blocks, block{string(last[1:]), string(raw), at})
	})
	require.Greater(t, len(blocks), 100)
	trailer := func(raw string) int { return len(raw) - 12 } // number of entries, checksum
	for name, damage := range map[string]func(raw string) (at int, with string){
		"no entries":         func(raw string) (int, string) { return trailer(raw), "\x00\x00\x00\x00" },
		"a wild offset":      func(raw string) (int, string) { return 0, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" },
		"a smaller key":      func(string) (int, string) { return 3, "0000" }, // behind two lengths of 1 and 2 bytes
		"another first byte": func(string) (int, string) { return 3, "\x00" },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				for _, b := range blocks {
					_, err := f.WriteAt([]byte(b.raw), b.at)
					require.NoError(t, err)
				}
			}()
			for _, b := range blocks {
				at, with := damage(b.raw)
				_, err := f.WriteAt([]byte(with), b.at+int64(at))
				require.NoError(t, err)
			}
			lost := 0
			for _, key := range keys {
				value, found, err := s.Get(nil, []byte(key), nil)
				if err != nil || !found || string(value) != strings.Repeat(key, 10) {
					in := false
					for _, b := range blocks {
						in = in || strings.Contains(b.raw, key)
					}
					require.True(t, in, "%s is in a whole block: found %t, error %v", key, found, err)
					lost++
				}
			}
			require.Positive(t, lost, "nothing is damaged")
		})
	}
}

// pagesOf returns where in the file something of a transaction stands.
func pagesOf(tx *bolt.Tx) func(b []byte) int64 {
	start := tx.DB().Info().Data
	return func(b []byte) int64 { return int64(uintptr(unsafe.Pointer(unsafe.SliceData(b))) - start) }
}

// A leaf that the disk cannot read makes lookups fault that bbolt alone would make fault too, and no
// others, wherever the leaf is: neither a mirror nor a guess touches a leaf at the edge, or one
// beside that of the key, in vain.
func TestAnUnreadableLeafHarmsNoOtherKeys(t *testing.T) {
	s, path, keys := mirrored(t, 4000)
	var leaves []int64
	firstBlocks(t, s, func(_, _ []byte, at int64) { leaves = append(leaves, at-at%int64(os.Getpagesize())) })
	var memory []byte // bbolt's map
	require.NoError(t, s.file.View(func(tx *bolt.Tx) error {
		data := tx.DB().Info().Data
		memory = unsafe.Slice(*(**byte)(unsafe.Pointer(&data)), tx.Size())
		return nil
	}))
	for _, i := range []int{0, 1, len(leaves) / 2, len(leaves) - 2, len(leaves) - 1} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s.reading.Load().dropMirror() // and what it has learned
			s.reading.Load().reflect(path, s.opts.Memory, s.opts.Logger)
			leaf := memory[leaves[i]:][:os.Getpagesize()]
			require.NoError(t, unix.Mprotect(leaf, unix.PROT_NONE))
			defer func() { require.NoError(t, unix.Mprotect(leaf, unix.PROT_READ)) }()
			alone := 0
			for _, key := range keys {
				inFile := faults(func() {
					require.NoError(t, s.file.View(func(tx *bolt.Tx) error {
						_, _, err := run.FindPacked(bottomOf(tx).packed, []byte(key))
						return err
					}))
				})
				if inFile {
					alone++
					continue
				}
				var value []byte
				found, err := false, error(nil)
				require.False(t, faults(func() { value, found, err = s.Get(nil, []byte(key), nil) }), key)
				require.NoError(t, err)
				require.True(t, found)
				require.Equal(t, strings.Repeat(key, 10), string(value))
			}
			require.Positive(t, alone)
		})
	}
}

// faults reports whether f touches memory that cannot be read.
func faults(f func()) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			fault = true
		default:
			panic(r)
		}
	}()
	f()
	return false
}
