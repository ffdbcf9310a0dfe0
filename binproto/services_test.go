package binproto_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/access"
	"gotycoon/access/accesstest"
	"gotycoon/binproto"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/record"
)

// servicesFixture has a services' database with one record. Its file is called like the database of
// the command line.
func servicesFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t, db.Options{Services: filepath.Join(t.TempDir(), "a.kct")}, filepath.Join(t.TempDir(), "a.kct"))
	f.handler = binproto.NewHandler(binproto.Options{Catalog: f.catalog.View, Services: f.catalog.Services(), Logger: bareLogger(&f.log)})
	require.NoError(t, f.catalog.Services().Set(nil, []byte("bound"), []byte("7"), record.Never))
	return f
}

// For requests about records the services' database is one that does not exist.
func TestNoRecordOfTheServicesDatabaseIsReached(t *testing.T) {
	f := servicesFixture(t)
	require.Equal(t, reply(frame.SetBulk, 0), f.exchange(t, setBulk(0, rec(65534, "bound", "0"), rec(65534, "new", "0"))))
	require.Equal(t, reply(frame.RemoveBulk, 0), f.exchange(t, keysBulk(frame.RemoveBulk, 0, key(65534, "bound"))))
	require.Equal(t, getReply(), f.exchange(t, keysBulk(frame.GetBulk, 0, key(65534, "bound"))))
	f.exchange(t, setBulk(frame.NoReply, rec(65534, "bound", "0")))
	value, _, err := f.catalog.Services().Get(nil, nil, []byte("bound"))
	require.NoError(t, err)
	require.Equal(t, "7", string(value))
	n, err := f.catalog.Services().Count(nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

// It can be copied, by its number and with the right to replicate it.
func TestCopyOfTheServicesDatabase(t *testing.T) {
	byNumber, byText := frame.CopyRequest{DBIdx: 65534}, frame.CopyRequest{Name: []byte("65534")}
	for rule, allowed := range map[string]bool{
		"":                                     true, // no access file
		"allow anyone replicate":               true,
		"allow anyone replicate db=*":          true,
		"allow anyone replicate db=65534":      true,
		"allow anyone admin":                   true,
		"allow anyone read,write":              false,
		"allow anyone replicate db=0":          false,
		"allow anyone replicate db=a.kct":      false,
		"allow anyone replicate prefix=b":      false,
		"allow anyone read,write service=lock": false,
	} {
		f := servicesFixture(t)
		if rule != "" {
			f.limits.Access = accesstest.Guard(t, rule)
		}
		for _, request := range []frame.CopyRequest{byNumber, byText} {
			got := f.exchange(t, frame.AppendCopyRequest(nil, request))
			if !allowed {
				part, _, err := frame.DecodeCopyPart(got)
				require.NoError(t, err, rule)
				require.Contains(t, string(part.Text), access.Prefix, rule)
				continue
			}
			h, records := copied(t, got)
			require.EqualValues(t, 65534, h.DBIdx, rule)
			require.Len(t, records, 1, rule)
		}
	}
	f := servicesFixture(t)
	h, _ := copied(t, f.exchange(t, frame.AppendCopyRequest(nil, frame.CopyRequest{Name: []byte("a.kct")})))
	require.Zero(t, h.DBIdx)
}
