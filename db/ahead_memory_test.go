package db

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/gate"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// copying is a store that waits before it copies a large value.
type copying struct {
	store.Preparer
	begun, goOn chan struct{}
}

// Prepare implements store.Preparer.
func (s *copying) Prepare(ups []ulog.Update) {
	close(s.begun)
	<-s.goOn
	s.Preparer.Prepare(ups)
}

// The copy of a large value keeps no other key waiting, also in a database without a log.
func TestALargeValueIsCopiedBeforeItsKeyIsLocked(t *testing.T) {
	large := make([]byte, memoryAhead)
	large[7] = 1
	for _, expr := range []string{":", "*", "%"} {
		for what, op := range map[string]func(d *DB) error{
			"set":  func(d *DB) error { return d.Set(nil, []byte("large"), large, record.Never) },
			"add":  func(d *DB) error { return d.Add(nil, []byte("large"), large, record.Never) },
			"bulk": func(d *DB) error { return bulkOfOne(d, []byte("large"), large) },
			"in place": func(d *DB) error {
				room := append(make([]byte, record.Headroom), large...)
				return d.StoreInPlace(nil, []byte("large"), room, record.Never, record.Anyway)
			},
		} {
			t.Run(fmt.Sprint(expr, what), func(t *testing.T) {
				d := mustOpen(t, Options{}, expr).DB(0)
				s := &copying{d.store.(store.Preparer), make(chan struct{}), make(chan struct{})}
				d.store = s
				done := make(chan error, 1)
				go func() { done <- op(d) }()
				<-s.begun
				passes(t, func() error { return d.Set(nil, []byte("large"), []byte("small"), record.Never) })
				passes(t, func() error { return d.Remove(nil, []byte("large")) })
				close(s.goOn)
				require.NoError(t, <-done)
				got, _, err := d.Get(nil, nil, []byte("large"))
				require.NoError(t, err)
				require.Equal(t, large, got)
			})
		}
	}
}

func bulkOfOne(d *DB, key, value []byte) error {
	_, err := d.SetBulk(nil, []Record{{Key: key, Value: value, XT: record.Never}}, false)
	return err
}

// What is too much for the memory is refused before it is copied.
func TestALargeValueWithoutRoomIsNotCopied(t *testing.T) {
	c := mustOpen(t, Options{}, "%")
	d := c.DB(0)
	require.NoError(t, d.Set(nil, []byte("small"), nil, record.Never))
	s := &copying{Preparer: d.store.(store.Preparer)} // its channels are nil: it would never return
	d.store = s
	c.Gate().Set(gate.Limits{Disk: 1 << 30, Full: true})
	require.Error(t, d.Set(nil, []byte("large"), make([]byte, memoryAhead), record.Never))
}
