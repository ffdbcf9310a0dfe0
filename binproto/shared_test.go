package binproto_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/binproto"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
)

// Databases in an engine have no followers: a request that wants some to have its updates is
// refused before it has stored anything.
func TestAnEngineHasNoFollowers(t *testing.T) {
	f := newFixture(t, db.Options{}, ":")
	called := false
	f.handler = binproto.NewHandler(binproto.Options{Catalog: f.catalog.View, Logger: bareLogger(&f.log), Shared: true,
		Scripts: scripts(func(db.Heed, *db.Pending) int { called = true; return 0 })})
	two := uint32(2) << 24
	require.Equal(t, 2, frame.ReplicasOf(two))
	require.Equal(t, []byte{byte(frame.Error)}, f.exchange(t, setBulk(two, rec(0, "a", "1"))))
	require.Equal(t, []byte{byte(frame.Error)}, f.exchange(t, playScript(two)))
	require.False(t, called)
	require.Contains(t, f.log.String(), "no followers")
	n, err := f.catalog.DB(0).Count(nil)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, reply(frame.SetBulk, 1), f.exchange(t, setBulk(0, rec(0, "a", "1"))))
}
