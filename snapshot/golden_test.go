package snapshot

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/recordings"
	"gotycoon/internal/vfs"
)

// neverXT is the expiration time that the original lists and stores for records that stay.
const (
	neverXT     = "9223372036854775807"
	neverStored = 1<<40 - 1
)

// dumped reads a recorded listing: key, value, expiration time.
func dumped(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	records := map[string]string{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, fields, 3)
		xt := uint64(neverStored)
		if fields[2] != neverXT {
			xt, err = strconv.ParseUint(fields[2], 10, 40)
			require.NoError(t, err)
		}
		prefix := binary.BigEndian.AppendUint64(nil, xt)[3:]
		records[fromHex(t, fields[0])] = string(prefix) + fromHex(t, fields[1])
	}
	return records
}

func fromHex(t *testing.T, s string) string {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return string(b)
}

type pair struct{ key, value string }

// readAll returns the records in front of the first error.
func readAll(r *Reader) (records []pair, err error) {
	for {
		key, value, err := r.Next()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		records = append(records, pair{string(key), string(value)})
	}
}

func contentOf(records []pair) map[string]string {
	m := map[string]string{}
	for _, p := range records {
		m[p.key] = p.value
	}
	return m
}

func mustRead(t *testing.T, path string) (Header, []pair) {
	t.Helper()
	r, err := Open(vfs.OS{}, path)
	require.NoError(t, err)
	defer r.Close()
	records, err := readAll(r)
	require.NoError(t, err)
	return r.Header(), records
}

func TestGoldenSnapshotsHaveTheirContents(t *testing.T) {
	golden := recordings.Dir(t, "snapshot")
	for dir, want := range map[string]Compressor{"none": Plain, "zlib": Zlib, "lzo": LZO, "lzma": LZMA, "lzma-unsupported-build": bareLZMA} {
		info, err := os.ReadFile(filepath.Join(golden, dir, "bgsinform.tsv"))
		require.NoError(t, err)
		var informed strings.Builder
		for i := range 2 {
			h, records := mustRead(t, filepath.Join(golden, dir, Name(i)))
			require.Equal(t, want, h.Compressor, dir)
			require.Equal(t, h.Count, int64(len(records)), dir)
			require.Equal(t, dumped(t, filepath.Join(golden, dir, "db"+strconv.Itoa(i)+".hex.tsv")), contentOf(records), dir)
			informed.WriteString(strings.Join([]string{strconv.Itoa(i), strconv.FormatUint(uint64(h.Stamp), 10),
				strconv.FormatInt(h.Count, 10), strconv.FormatInt(h.Size, 10)}, "\t") + "\n")
		}
		require.Equal(t, string(info), informed.String(), dir)
	}
}

func TestGoldenSnapshotsOfSeveralBlocks(t *testing.T) {
	golden := recordings.Dir(t, "snapshot")
	for _, dir := range []string{"multi-zlib", "multi-lzo"} {
		_, records := mustRead(t, filepath.Join(golden, dir, Name(0)))
		want := map[string]string{}
		for i := range 25 {
			want["big"+strconv.Itoa(i/10)+strconv.Itoa(i%10)] = "\xff\xff\xff\xff\xff" + strings.Repeat(string(rune('A'+i)), 100_000)
		}
		require.Equal(t, want, contentOf(records), dir)
	}
}

// What we write from the records of a recorded file is that file, byte for byte.
func TestWrittenAsTheOriginalDoes(t *testing.T) {
	golden := recordings.Dir(t, "snapshot")
	for i := range 2 {
		path := filepath.Join(golden, "none", Name(i))
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		h, records := mustRead(t, path)
		require.Equal(t, want, encode(t, h, records))
	}
}

func encode(t testing.TB, h Header, records []pair) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, h)
	require.NoError(t, err)
	for _, p := range records {
		require.NoError(t, w.Add([]byte(p.key), []byte(p.value)))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}
