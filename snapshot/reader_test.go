package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs"
)

// every is all compressors that are written.
func every() []Compressor { return []Compressor{Plain, Zlib, LZO, LZMA, Zstd, S2} }

// some returns records of a kind: n of them.
func some(n int) []pair {
	var records []pair
	for i := range n {
		records = append(records, pair{fmt.Sprintf("k%d", i), "\xff\xff\xff\xff\xffv" + strings.Repeat("x", i%3)})
	}
	return records
}

func decode(t testing.TB, data []byte) ([]pair, error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return readAll(r)
}

func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 5<<18)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	records := map[string][]pair{
		"none":    nil,
		"empty":   {{"", ""}, {"k", ""}, {"", "v"}},
		"small":   some(1000),
		"large":   {{"a", string(noise)}, {string(noise[:300_000]), "b"}, {"c", strings.Repeat("c", 5<<18)}, {"d", "d"}},
		"borders": nil,
	}
	for _, n := range []int{1, 3, 126, 127, 128, 225, 226, 227, 16383, 16384, plainChunk - 8, plainChunk, blockLimit - 9, blockLimit} {
		records["borders"] = append(records["borders"], pair{fmt.Sprint(n), string(noise[:n])})
	}
	for _, c := range every() {
		for name, want := range records {
			t.Run(c.String()+" "+name, func(t *testing.T) {
				h := Header{c, 1795229344543000000, int64(len(want)), 77}
				r, err := NewReader(bytes.NewReader(encode(t, h, want)))
				require.NoError(t, err)
				require.Equal(t, h, r.Header())
				got, err := readAll(r)
				require.NoError(t, err)
				require.True(t, slices.Equal(want, got), "records have changed")
				require.EqualValues(t, len(want), r.Count())
			})
		}
	}
}

func TestDump(t *testing.T) {
	var b bytes.Buffer
	w, err := NewDumpWriter(&b)
	require.NoError(t, err)
	require.NoError(t, w.Add([]byte("key"), []byte("value")))
	require.NoError(t, w.Add(nil, []byte(strings.Repeat("v", 200))))
	require.NoError(t, w.Close())
	require.Equal(t, "KCSS\n\x00"+"\x00\x03\x05keyvalue"+"\x00\x00\x81\x48"+strings.Repeat("v", 200)+"\xff", b.String())
	r, err := NewReader(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	require.True(t, r.Dump())
	records, err := readAll(r)
	require.NoError(t, err)
	require.Equal(t, []pair{{"key", "value"}, {"", strings.Repeat("v", 200)}}, records)

	records, err = decode(t, b.Bytes()[:b.Len()-1])
	require.Len(t, records, 2)
	require.ErrorIs(t, err, errNoEnd)
}

// The records and damage of golden/snapshot/robustness.txt, with what the original has loaded of
// each.
func TestDamage(t *testing.T) {
	whole := encode(t, Header{Count: 5}, some5())
	require.Len(t, whole, 94)
	change := func(at int, to ...byte) []byte {
		b := bytes.Clone(whole)
		copy(b[at:], to)
		return b
	}
	for _, c := range []struct {
		name    string
		data    []byte
		records int
		err     error
		offset  int64
	}{
		{"one byte short", whole[:93], 4, errCut, 82},
		{"three bytes short", whole[:91], 4, errCut, 82},
		{"six bytes short", whole[:88], 4, errCut, 82},
		{"trailing 1 byte", append(bytes.Clone(whole), recordMark), 5, errCut, 94},
		{"trailing 3 zero", append(bytes.Clone(whole), 0, 0, 0), 5, errMark, 94},
		{"bad magic", change(0, 'X'), 0, ErrNoSnapshot, 0},
		{"short header", whole[:20], 0, ErrNoSnapshot, 0},
		{"nothing", nil, 0, ErrNoSnapshot, 0},
		{"bad checksum field", change(6, 1, 2, 3, 4), 0, ErrCompressor, 0},
		{"count field wrong", change(25, 99), 5, nil, 0},
		{"key size of record 2", change(47, 0xcd), 1, errCut, 46},
		{"a size that no record has", change(47, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), 1, errSize, 46},
		{"a number without end", change(47, bytes.Repeat([]byte{0xff}, 12)...), 1, errSize, 46},
		{"magic of record 2", change(46, 0xcd), 1, errMark, 46},
		{"two bytes behind record 4", whole[:84], 4, errCut, 82},
		{"three bytes behind record 4", whole[:85], 4, errCut, 82},
		{"zero records", whole[:34], 0, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			records, err := decode(t, c.data)
			require.Len(t, records, c.records)
			require.ErrorIs(t, err, c.err)
			if c.err != nil {
				var damage *DamageError
				require.ErrorAs(t, err, &damage)
				require.Equal(t, c.offset, damage.Offset)
			}
		})
	}
}

// some5 is five records of 12 bytes.
func some5() []pair {
	var records []pair
	for i := range 5 {
		records = append(records, pair{fmt.Sprintf("k%d", i), "\xff\xff\xff\xff\xffvv"})
	}
	return records
}

func deflated(t *testing.T, level int, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, level)
	require.NoError(t, err)
	_, err = w.Write(raw)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// blocksOf is a file of blocks.
func blocksOf(c Compressor, blocks ...[]byte) []byte {
	b := appendHeader(nil, Header{Compressor: c})
	for _, p := range blocks {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(p))), p...)
	}
	return b
}

// What golden/snapshot/handmade-compressed.txt tells of the original; where it loses records for no
// good reason they are loaded.
func TestForeignBlocks(t *testing.T) {
	raw := encode(t, Header{}, some(60))[headerSize:]
	one := encode(t, Header{}, some(1))[headerSize:]
	packed := deflated(t, 6, raw)
	whole := blocksOf(Zlib, append(packed, 0))
	var each [][]byte
	for _, p := range some(9) {
		each = append(each, deflated(t, 6, encode(t, Header{}, []pair{p})[headerSize:]))
	}
	long := bytes.Clone(whole)
	long[headerSize] = 1
	for _, c := range []struct {
		name    string
		data    []byte
		records int
		err     error
	}{
		{"with the trailing zero", whole, 60, nil},
		{"without the trailing zero", blocksOf(Zlib, packed), 60, nil},
		{"stored blocks", blocksOf(Zlib, deflated(t, 0, raw)), 60, nil},
		{"one block per record", blocksOf(Zlib, each...), 9, nil},
		{"empty body", blocksOf(Zlib), 0, nil},
		{"literal-only LZO", blocksOf(LZO, lzoLiterals(raw)), 60, nil},
		{"literal-only LZO, small", blocksOf(LZO, lzoLiterals(one)), 1, nil},
		{"block length longer than the file", long, 0, errCutBlock},
		{"block cut", whole[:len(whole)-20], 0, errCutBlock},
		{"block size cut", append(bytes.Clone(whole), 0, 0, 1), 60, errCutBlock},
		{"garbage in the second block", blocksOf(Zlib, deflated(t, 6, one), []byte("\x07garbage")), 1, nil},
		{"garbage behind a block", blocksOf(Zlib, append(deflated(t, 6, one), 1)), 1, errBehind},
		{"record split over two blocks", blocksOf(Zlib, deflated(t, 6, raw[:30]), deflated(t, 6, raw[30:])), 60, nil},
		{"built without zlib", blocksOf(bareZlib, append([]byte("z\x00"), raw...)), 60, nil},
		{"built without lzo", blocksOf(bareLZO, append([]byte("o\x00"), raw...)), 60, nil},
		{"built without lzma", blocksOf(bareLZMA, append([]byte("x\x00"), raw...)), 60, nil},
		{"built without zlib, wrong mark", blocksOf(bareZlib, append([]byte("x\x00"), raw...)), 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			records, err := decode(t, c.data)
			require.Len(t, records, c.records)
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
			}
			damagedOnPurpose := strings.Contains(c.name, "garbage") || strings.Contains(c.name, "wrong")
			require.Equal(t, c.err != nil || damagedOnPurpose, err != nil, "%v", err)
		})
	}
}

func lzoLiterals(raw []byte) []byte {
	var b bytes.Buffer
	e := literalEncoder{}
	_ = e.begin(&b)
	_, _ = e.Write(raw)
	_ = e.finish()
	return b.Bytes()
}

// A file that promises much is not given memory for it.
func TestPromisesTakeNoMemory(t *testing.T) {
	huge := append(appendHeader(nil, Header{}), recordMark, 1, 0x83, 0xff, 0xff, 0xff, 0x7f)
	xz := encode(t, Header{Compressor: LZMA}, some(9))
	dictionary := bytes.Index(xz, []byte{0x21, 1}) + 2
	xz[dictionary] = 40 // 4 GiB
	for name, data := range map[string][]byte{
		"a record":        append(huge, make([]byte, 1000)...),
		"a block":         append(appendHeader(nil, Header{Compressor: Zlib}), 0xff, 0xff, 0xff, 0xff, 1, 2, 3),
		"an LZO block":    append(appendHeader(nil, Header{Compressor: LZO}), 0xff, 0xff, 0xff, 0xff, 1, 2, 3),
		"an LZMA block":   xz,
		"a zstd window":   blocksOf(Zstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0, 0}),
		"an LZO sequence": blocksOf(LZO, append(append([]byte{0}, make([]byte, 10_000)...), 1, 2, 3)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decode(t, data)
		runtime.ReadMemStats(&after)
		require.Error(t, err, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(12<<20), name)
	}
}

func TestOpenNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(vfs.OS{}, dir+"/a.ktss")
	require.ErrorContains(t, err, "a.ktss")
	require.NoError(t, vfs.WriteFileAtomic(vfs.OS{}, dir+"/a.ktss", []byte("KTSS")))
	_, err = Open(vfs.OS{}, dir+"/a.ktss")
	require.ErrorContains(t, err, "damaged snapshot "+dir+"/a.ktss: offset 0")
	data := encode(t, Header{}, some(3))
	require.NoError(t, vfs.WriteFileAtomic(vfs.OS{}, dir+"/a.ktss", data[:len(data)-1]))
	r, err := Open(vfs.OS{}, dir+"/a.ktss")
	require.NoError(t, err)
	defer r.Close()
	_, err = readAll(r)
	require.ErrorContains(t, err, "damaged snapshot "+dir+"/a.ktss: offset ")
}

func TestCompressorNames(t *testing.T) {
	for name, want := range map[string]Compressor{"": Plain, "none": Plain, "ZLIB": Zlib, "gz": Zlib, "lzo": LZO, "Oz": LZO, "lzma": LZMA,
		"xz": LZMA, "zstd": Zstd, "s2": S2, "bogus": Plain, "none (in place of lzo)": Plain} {
		c, known := ParseCompressor(name)
		require.Equal(t, want, c, name)
		require.Equal(t, name == "none" || want != Plain, known, name)
	}
}

// FuzzReader reads anything: what can be read is the same when it is written and read again.
func FuzzReader(f *testing.F) {
	for _, c := range every() {
		f.Add(encode(f, Header{Compressor: c, Count: 20}, some(20)))
	}
	for c := bareLZMA; c <= bareZlib; c++ {
		f.Add(blocksOf(c, append([]byte{"xoz"[c-bareLZMA], 0}, encode(f, Header{}, some(5))[headerSize:]...)))
	}
	f.Add([]byte("KCSS\n\x00\x00\x01\x01kv\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := decode(t, data)
		for _, p := range records {
			require.LessOrEqual(t, len(p.key)+len(p.value), MaxRecord)
		}
		if err != nil {
			var damage *DamageError
			require.ErrorAs(t, err, &damage)
		}
		again, err := decode(t, encode(t, Header{}, records))
		require.NoError(t, err)
		require.Equal(t, records, again)
	})
}
