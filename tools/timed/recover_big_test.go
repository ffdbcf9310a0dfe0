package timed_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/rebuild"
	"gotycoon/tools/timed"
	"gotycoon/ulog"
)

// TestRecoverBig restores five million records to a moment inside of a log of two gigabytes and more.
func TestRecoverBig(t *testing.T) {
	if os.Getenv("GOTYCOON_BIG") == "" {
		t.Skip("set GOTYCOON_BIG=1 for five million records")
	}
	const records, later = 5_000_000, 200_000
	dir := t.TempDir()
	logDir, path := filepath.Join(dir, "ulog"), filepath.Join(dir, "a.kct")
	until := writeBigLog(t, logDir, records, later)
	succeed(t, "create", path)

	start := time.Now()
	var errs bytes.Buffer
	code := timed.Main(context.Background(), []string{"recover", "-until", fmt.Sprint(until), path, logDir}, nil, io.Discard, &errs)
	took := time.Since(start)
	require.Zero(t, code, errs.String())
	t.Logf("%d records in %v: %.0f records/s", records, took, records/took.Seconds())

	for _, command := range []string{"verify", "compact"} {
		start = time.Now()
		require.Zero(t, timed.Main(context.Background(), []string{command, path}, nil, io.Discard, &errs), errs.String())
		t.Logf("%s: %v", command, time.Since(start))
	}
	f, err := rebuild.Open(path, false, true)
	require.NoError(t, err)
	defer f.Close()
	require.EqualValues(t, records, f.Meta().Count)
	require.NoError(t, f.Records(func(_, value []byte) error {
		require.Equal(t, byte('v'), value[5])
		return nil
	}))
}

// writeBigLog logs records in random order, and then the removal of some and changes of others. It returns the stamp of the last
// of the former.
func writeBigLog(t *testing.T, dir string, records, later int) ulog.Stamp {
	t.Helper()
	log, err := ulog.Open(dir, ulog.Options{})
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(1, 2))
	value := append(bytes.Repeat([]byte{0xff}, 5), bytes.Repeat([]byte("v"), 365)...)
	var until, last ulog.Stamp
	for i := range records + later {
		n := uint64(i) * 11400714819323198485 // another one for every i, in no order
		u := ulog.Update{SID: 1, Op: ulog.OpSet, Key: fmt.Appendf(nil, "key%016x", n), Value: value}
		if i >= records {
			u.Key = fmt.Appendf(nil, "key%016x", rnd.Uint64N(uint64(records))*11400714819323198485)
			u.Value = []byte("\xff\xff\xff\xff\xfflate")
			if i%2 == 0 {
				u.Op, u.Value = ulog.OpRemove, nil
			}
		}
		last, err = log.Append([]ulog.Update{u})
		require.NoError(t, err)
		if i%1000 == 0 {
			require.NoError(t, log.Wait(last))
		}
		if i == records-1 {
			until = last
		}
	}
	require.NoError(t, log.Close())
	return until
}
