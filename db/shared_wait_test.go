package db

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
	"gotycoon/db/record"
)

// Who waits for a transaction of another client waits for the timeout of the engine and no longer,
// at the transaction's own server as at others.
func TestAWaitForATransactionEnds(t *testing.T) {
	k := []byte("k")
	for name, wait := range map[string]func(d *DB) error{
		"set":       func(d *DB) error { return d.Set(nil, k, k, record.Never) },
		"append":    func(d *DB) error { return d.Append(nil, k, k, record.Never) },
		"bulk":      func(d *DB) error { return bulkOf(d, 2, false) },
		"atomic":    func(d *DB) error { return bulkOf(d, 2, true) },
		"clear":     func(d *DB) error { return d.Clear(nil) },
		"transfer":  func(d *DB) error { return transferInTransaction(d, k, k) },
		"procedure": func(d *DB) error { _, err := d.Accept(&Pending{Lingers: true}, k, storing("v")); return err },
		"claim":     func(d *DB) error { _, err := d.Claim(nil, nil, k, nil); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				place := mem.New(mem.Options{})
				for i, server := range []string{"its own", "another"} {
					e := place.Server(server)
					t.Cleanup(func() { require.NoError(t, e.Close()) })
					c := mustOpen(t, Options{Shared: e, SID: 1, Gather: gather.Options{Timeout: 10 * time.Second}}, "x", "y")
					if i == 0 {
						tx, err := c.DB(0).Begin(nil, false)
						require.NoError(t, err)
						defer func() { require.NoError(t, tx.Abort()) }()
					}
					began := time.Now()
					err := wait(c.DB(0))
					if i == 0 || name != "clear" { // one that waits in the engine is on its way there
						require.ErrorIs(t, err, dberr.ErrEngine, server)
						require.NotErrorIs(t, err, dberr.ErrOutcome, server)
					}
					require.Error(t, err, server)
					require.InDelta(t, 10, time.Since(began).Seconds(), 1, server)
					require.NoError(t, c.DB(1).Set(nil, k, k, record.Never), "another database")
				}
			})
		})
	}
}
