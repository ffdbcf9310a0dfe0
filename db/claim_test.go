package db

import (
	"gotycoon/db/gate"
	"gotycoon/db/record"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// refusals are the states of a server in which it takes no updates.
var refusals = map[string]func(c *Catalog){
	"no space": func(c *Catalog) { c.Gate().Set(gate.Limits{Disk: -1}) },
	"guarded":  func(c *Catalog) { c.SetGuarded(true) },
}

// accepts ends all refusals.
func accepts(c *Catalog) {
	c.Gate().Set(gate.Limits{Disk: 1 << 30})
	c.SetGuarded(false)
}

// A message that was fetched and not deleted must be there again when its connection ends, also
// where the server takes no updates at that moment: nobody tries again.
func TestGiveBackWhereNothingCanBeStored(t *testing.T) {
	for name, expiry := range map[string]record.XT{"with an expiration time": 1000, "for ever": record.Never} {
		for trouble, begin := range refusals {
			t.Run(name+", "+trouble, func(t *testing.T) {
				now := time.Unix(1_000_000, 0)
				var news []string
				c := mustOpen(t, Options{LogDir: t.TempDir(), Now: func() time.Time { return now }}, "%")
				d := c.DB(0)
				d.Watch(WatchOptions{Claims: true, News: func(key []byte) { news = append(news, string(key)) }})
				require.NoError(t, d.Set(nil, []byte("queue 1"), []byte("message"), expiry))
				for range 2 { // the record is claimed again, and given back again
					news = nil
					claim, err := d.Claim(nil, nil, []byte("queue "), nil)
					require.NoError(t, err)
					require.Equal(t, "[]", visibleKeys(t, d))
					now = now.Add(time.Hour) // its time passes while a client has it
					require.NoError(t, d.Vacuum(nil, 0))
					begin(c)
					err = claim.GiveBack(nil)
					accepts(c)
					require.Equal(t, expiry == record.Never, err == nil, "%v", err)
					require.Equal(t, []string{"queue 1"}, news, "who waits is woken")
					require.NoError(t, d.Vacuum(nil, 0))
					require.Equal(t, "[queue 1]", visibleKeys(t, d))
					value, xt, err := d.Get(nil, nil, []byte("queue 1"))
					require.NoError(t, err)
					require.Equal(t, "message", string(value))
					require.Equal(t, record.MaxXT, xt)
				}
				require.NoError(t, mustClaim(t, d, "queue ", "queue 1").GiveBack(nil))
				require.Empty(t, d.watch.Load().claims.late, "what could be stored is not remembered")
				require.NoError(t, mustClaim(t, d, "queue ", "queue 1").Finish(nil))
				require.Equal(t, "[]", visibleKeys(t, d))
			})
		}
	}
}

// What is remembered of a record that came back ends with the record.
func TestRecordsThatCameBackCanBeOverwritten(t *testing.T) {
	for name, overwrite := range map[string]func(d *DB) error{
		"removed": func(d *DB) error { return d.Remove(nil, []byte("queue 1")) },
		"cleared": func(d *DB) error { return d.Clear(nil) },
		"stored":  func(d *DB) error { return d.Set(nil, []byte("queue 1"), nil, record.XT(-1)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := mustOpen(t, Options{LogDir: t.TempDir()}, "%")
			d := c.DB(0)
			d.Watch(WatchOptions{Claims: true})
			require.NoError(t, d.Set(nil, []byte("queue 1"), []byte("message"), 1000))
			claim := mustClaim(t, d, "queue ", "queue 1")
			c.SetGuarded(true)
			require.Error(t, claim.GiveBack(nil))
			c.SetGuarded(false)
			require.NoError(t, overwrite(d))
			require.NoError(t, d.Vacuum(nil, 0))
			require.Equal(t, "[]", visibleKeys(t, d))
			require.Zero(t, d.watch.Load().claims.n.Load())
		})
	}
}

// A message that cannot be deleted stays with its client, and comes back when the connection ends.
func TestFinishWhereNothingCanBeStored(t *testing.T) {
	for trouble, begin := range refusals {
		t.Run(trouble, func(t *testing.T) {
			c := mustOpen(t, Options{LogDir: t.TempDir()}, "%")
			d := c.DB(0)
			d.Watch(WatchOptions{Claims: true})
			require.NoError(t, d.Set(nil, []byte("queue 1"), []byte("message"), 1000))
			claim := mustClaim(t, d, "queue ", "queue 1")
			begin(c)
			require.Error(t, claim.Finish(nil))
			require.Equal(t, "[]", visibleKeys(t, d))
			require.Error(t, claim.GiveBack(nil))
			accepts(c)
			mustClaim(t, d, "queue ", "queue 1")
		})
	}
}
