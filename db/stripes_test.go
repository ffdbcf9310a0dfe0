package db

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/record"
)

// A script looks at a record for long. Who needs that record and others waits for it, but keeps
// nobody from the others.
func TestNobodyWaitsForAVisitorWithOtherKeysInHand(t *testing.T) {
	const keys = 300
	var recs []Record
	var names [][]byte
	for i := range keys {
		names = append(names, fmt.Appendf(nil, "%03d", i))
		recs = append(recs, Record{Key: names[i], Value: []byte("v"), XT: record.Never})
	}
	never := func([]byte, []byte, int64, bool) record.Verdict { return record.Verdict{} }
	begin := func(d *DB, _ *Pending) error {
		tx, err := d.Begin(nil, false)
		if err != nil {
			return err
		}
		return tx.Abort()
	}
	for what, op := range map[string]func(d *DB, p *Pending) error{
		"set":         func(d *DB, p *Pending) error { _, err := d.SetBulk(p, recs, true); return err },
		"remove":      func(d *DB, p *Pending) error { _, err := d.RemoveBulk(p, names, true); return err },
		"get":         func(d *DB, p *Pending) error { return d.GetBulk(p, names, true, func(int, []byte, int64) {}) },
		"visit":       func(d *DB, p *Pending) error { return d.AcceptBulk(p, names, never) },
		"clear":       func(d *DB, p *Pending) error { return d.Clear(p) },
		"transaction": begin,
	} {
		for _, one := range []bool{true, false} {
			t.Run(fmt.Sprint(what, one), func(t *testing.T) {
				d := mustOpen(t, Options{}, "%").DB(0)
				inside, goOn := make(chan struct{}), make(chan struct{})
				visit := func([]byte, []byte, int64, bool) record.Verdict {
					close(inside)
					<-goOn
					return record.Verdict{}
				}
				visited, done := make(chan error, 1), make(chan error, 1)
				go func() {
					p := &Pending{Lingers: true}
					if !one {
						visited <- d.AcceptBulk(p, [][]byte{names[keys-1]}, visit)
						return
					}
					_, err := d.Accept(p, names[keys-1], visit)
					visited <- err
				}()
				<-inside
				go func() { done <- op(d, nil) }()
				require.Eventually(t, func() bool { return d.stripes.aside.Load() == 1 }, time.Minute, time.Millisecond)
				lingers := d.stripes.of(names[keys-1])
				for _, name := range names {
					if d.stripes.of(name) != lingers {
						passes(t, func() error {
							_, err := d.Accept(nil, name, never)
							return err
						})
					}
				}
				close(goOn)
				require.NoError(t, <-visited)
				require.NoError(t, <-done)
				require.Zero(t, lingers.lingering.Load())
			})
		}
	}
}
