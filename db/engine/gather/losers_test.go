package gather_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
)

// rival is an engine on which another server changes a key before each of the first writes. So
// whoever has read the key loses. It notes the keys of holds, and of the records that groups store.
type rival struct {
	*mem.Server
	t      *testing.T
	other  *mem.Server
	lane   uint64 // of the other server
	key    string
	writes uint64 // of the other server, so far
	until  uint64
	begin  chan struct{} // the first write waits for it

	holds  [][]string
	groups [][]string
}

func (r *rival) Read(ctx context.Context, keys []engine.Key, how engine.Reading) ([]engine.Record, error) {
	if how.Hold.Lane > 0 {
		var names []string
		for _, k := range keys {
			names = append(names, string(k.Key))
		}
		r.holds = append(r.holds, names)
	}
	return r.Server.Read(ctx, keys, how)
}

func (r *rival) Write(ctx context.Context, g *engine.Group) (engine.Result, error) {
	<-r.begin
	if r.writes < r.until {
		r.writes++
		id := engine.GroupID{Lane: r.lane, Seq: r.writes}
		_, err := r.other.Write(ctx, &engine.Group{ID: id, Changes: []engine.Change{{Key: key(r.key), Value: []byte("0"), XT: engine.Forever}}})
		require.NoError(r.t, err)
	}
	var names []string
	for _, c := range g.Changes {
		names = append(names, string(c.Key.Key))
	}
	r.groups = append(r.groups, names)
	return r.Server.Write(ctx, g)
}

// against opens a Gather on an engine with a rival, who is faster so many times.
func against(t *testing.T, times uint64, key string, o gather.Options) (*rival, *world) {
	s := mem.New(mem.Options{})
	r := &rival{Server: s.Server("a"), t: t, other: s.Server("b"), key: key, until: times, begin: make(chan struct{})}
	o.Lanes = 1
	var err error
	r.lane, err = r.other.Lane(t.Context())
	require.NoError(t, err)
	return r, &world{T: t, store: s, engines: []*mem.Server{r.Server}, gathers: []*gather.Gather{gather.New(r, o)}}
}

// Who has lost goes first in the next group.
func TestLosersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := against(t, 2, "hot", gather.Options{GroupBytes: 1}) // one operation in a group
		defer w.close()
		answers := w.begin(set("first", "1"), increment("hot"), set("second", "1"), set("third", "1"))
		close(r.begin)
		for _, a := range answers() {
			require.NoError(t, a.err)
		}
		require.Equal(t, "1", w.value("hot"))
		require.Equal(t, [][]string{{"first"}, {"hot"}, {"hot"}, {"second"}, {"third"}}, r.groups)
		require.Empty(t, r.holds)
	})
}

// After three losses the keys are held, also those that an operation does not read: a group that
// holds one key must not wait for another one. Sixteen operations lose as one group, as eight and
// as four; then two of them are held.
func TestAHoldHasAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := against(t, 4, "hot", gather.Options{})
		defer w.close()
		reader := operation{Keys: []engine.Key{key("x"), key("hot")}, Body: func(v *gather.View) error {
			addTo(v, key("hot"), 1)
			return nil
		}}
		blind := operation{Keys: []engine.Key{key("hot"), key("z"), key("y")}, Blind: true, Body: func(v *gather.View) error {
			for _, name := range []string{"hot", "y", "z"} {
				v.Set(key(name), []byte("5"), engine.Forever)
			}
			return nil
		}}
		ops := []operation{{Keys: []engine.Key{key("a"), key("b")}, Blind: true, Body: func(v *gather.View) error {
			v.Set(key("a"), nil, engine.Forever)
			return nil
		}}}
		for range 8 {
			ops = append(ops, reader, blind)
		}
		answers := w.begin(ops...)
		close(r.begin)
		for _, a := range answers() {
			require.NoError(t, a.err)
		}
		require.Equal(t, "5 5 -", w.value("hot")+" "+w.value("y")+" "+w.value("x"))
		require.Equal(t, []string{"hot", "x", "y", "z"}, r.holds[0])
	})
}
