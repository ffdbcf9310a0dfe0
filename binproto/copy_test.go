package binproto_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/record"
)

// copied reads a whole copy: header, records by key, end. Behind it there must be nothing.
func copied(t *testing.T, p []byte) (frame.CopyHeader, map[string]string) {
	t.Helper()
	h, n, err := frame.DecodeCopyHeader(p)
	require.NoError(t, err)
	got, digest := map[string]string{}, sha256.New()
	for p = p[n:]; ; p = p[n:] {
		var part frame.CopyPart
		part, n, err = frame.DecodeCopyPart(p)
		require.NoError(t, err)
		if part.Kind != frame.CopyBlock {
			require.Equal(t, frame.CopyEnd, part.Kind)
			require.EqualValues(t, len(got), part.Count)
			require.Equal(t, digest.Sum(nil), part.Digest[:])
			require.Len(t, p, n)
			return h, got
		}
		digest.Write(part.Records)
		for rest := part.Records; len(rest) > 0; {
			r, n, err := frame.DecodeCopyRecord(rest)
			require.NoError(t, err)
			got[string(r.Key)] = string(r.Value)
			rest = rest[n:]
		}
	}
}

func TestCopy(t *testing.T) {
	dir := t.TempDir()
	f := newFixture(t, db.Options{LogDir: filepath.Join(dir, "ulog")}, ":", "%#ktopts=p", filepath.Join(dir, "c.kct"), "%#rcomp=dec")
	flags := []uint32{0, frame.CopyPersistent | frame.CopyAscending, frame.CopyAscending, frame.CopyDecimal}
	for i, want := range flags {
		d := f.catalog.DB(i)
		long := strings.Repeat("long", 100_000)
		for n := range 3000 {
			require.NoError(t, d.Set(nil, fmt.Append(nil, n), fmt.Append(nil, "value", n), record.Never))
		}
		require.NoError(t, d.Set(nil, []byte("long"), []byte(long), record.Never))
		last := f.catalog.Log().Last()
		h, got := copied(t, f.exchange(t, frame.AppendCopyRequest(nil, frame.CopyRequest{DBIdx: uint16(i)})))
		require.Len(t, got, 3001)
		prefix := "\xff\xff\xff\xff\xff"
		if d.Info().Persistent {
			prefix = ""
		}
		require.Equal(t, prefix+"value7", got["7"])
		require.Equal(t, prefix+long, got["long"])
		require.Equal(t, want, h.Flags)
		require.EqualValues(t, i, h.DBIdx)
		require.Greater(t, h.TS, uint64(last))
		require.Equal(t, f.catalog.Log().ID(), h.LogID)
		require.EqualValues(t, 3001, h.Count)
	}
	_, got := copied(t, f.exchange(t, frame.AppendCopyRequest(nil, frame.CopyRequest{DBIdx: 9, Name: []byte("c.kct")})))
	require.Len(t, got, 3001, "a name is stronger than a number")
	require.NoError(t, f.catalog.DB(0).Clear(nil))
	_, got = copied(t, f.exchange(t, frame.AppendCopyRequest(nil, frame.CopyRequest{Name: []byte("0")})))
	require.Empty(t, got)
}

func TestCopyRefused(t *testing.T) {
	f := newFixture(t, db.Options{}, ":")
	for text, request := range map[string]frame.CopyRequest{
		"there is no database 1":      {DBIdx: 1},
		"there is no database no.kct": {Name: []byte("no.kct")},
		"a copy can go on behind a key only where keys are in the order of their bytes": {From: []byte("a")},
		"the request has flags that this server does not know":                          {Flags: 8},
	} {
		part, _, err := frame.DecodeCopyPart(f.exchange(t, frame.AppendCopyRequest(nil, request)))
		require.NoError(t, err)
		require.Equal(t, frame.CopyFailed, part.Kind)
		require.Equal(t, text, string(part.Text))
	}
	require.Empty(t, f.exchange(t, []byte{byte(frame.Copy), 0}), "a request that is cut is not answered")
}

// TestCopyToAClientThatGoesAway ends the connection within a copy: what was kept for it is given
// back, so that the file can be closed.
func TestCopyToAClientThatGoesAway(t *testing.T) {
	f := newFixture(t, db.Options{}, filepath.Join(t.TempDir(), "c.kct"))
	for n := range 200 {
		require.NoError(t, f.catalog.DB(0).Set(nil, fmt.Append(nil, n), make([]byte, 100_000), record.Never))
	}
	server, client := socketPair(t)
	_, err := client.Write(frame.AppendCopyRequest(nil, frame.CopyRequest{}))
	require.NoError(t, err)
	served := make(chan struct{})
	go func() { defer close(served); f.serve(server) }()
	_, err = client.Read(make([]byte, 1000))
	require.NoError(t, err)
	require.NoError(t, client.Close())
	<-served
}
