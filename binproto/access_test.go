package binproto_test

import (
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/access"
	"gotycoon/access/accesstest"
	"gotycoon/binproto"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/record"
)

func TestRights(t *testing.T) {
	set := setBulk(0, rec(0, "eu:1", "v"), rec(7, "x", "y"), rec(1, "eu:2", "v"))
	get := keysBulk(frame.GetBulk, 0, key(0, "eu:1"))
	remove := keysBulk(frame.RemoveBulk, 0, key(1, "eu:2"))
	script := frame.AppendScript(nil, frame.Script{Name: []byte("f")})
	follow := frame.AppendFollow(nil, frame.Follow{})
	clone := frame.AppendCopyRequest(nil, frame.CopyRequest{DBIdx: 1})
	for rule, want := range map[string]string{ // of each request: allowed or not
		"allow anyone read":                           "n y n n n n",
		"allow anyone write":                          "y n y n n n",
		"allow anyone write db=1":                     "n n y n n n",
		"allow anyone write prefix=eu:":               "y n y n n n",
		"allow anyone write prefix=us:":               "n n n n n n",
		"allow anyone read,write":                     "y y y y n n",
		"allow anyone replicate":                      "n n n n y y",
		"allow anyone replicate db=1":                 "n n n n n y",
		"allow anyone admin":                          "y y y y y y",
		"allow anyone admin from=10.1.2.3":            "n n n n n n",
		"# nobody":                                    "n n n n n n",
		"allow anyone read db=0 prefix=eu from=local": "n y n n n n",
	} {
		f := newFixture(t, db.Options{}, ":", "%")
		f.limits.Access = accesstest.Guard(t, rule)
		for i, request := range [][]byte{set, get, remove, script, follow, clone} {
			f.log.Reset()
			got := f.exchange(t, request)
			require.NotEmpty(t, got)
			denied := strings.Contains(f.log.String(), "access denied: ")
			require.Equal(t, want[2*i] == 'n', denied, "%s: request %d: %q", rule, i, got)
			if denied {
				require.Equal(t, byte(frame.Error), got[0])
			}
			if denied && i == 5 {
				part, n, err := frame.DecodeCopyPart(got)
				require.NoError(t, err)
				require.Len(t, got, n)
				require.Contains(t, string(part.Text), "access denied: ")
			} else if denied {
				require.Len(t, got, 1)
			}
		}
	}
}

// What stands before the first key that is refused stays done, as with every error, and nothing
// behind it.
func TestARefusedKeyEndsABulk(t *testing.T) {
	f := newFixture(t, db.Options{}, ":", "%")
	f.limits.Access = accesstest.Guard(t, "allow anyone write db=0")
	require.Equal(t, []byte{byte(frame.Error)}, f.exchange(t, setBulk(0, rec(0, "a", "1"), rec(1, "b", "2"), rec(0, "c", "3"))))
	for name, there := range map[string]bool{"a": true, "c": false} {
		_, _, err := f.catalog.DB(0).Get(nil, nil, []byte(name))
		require.Equal(t, there, err == nil, name)
	}
	n, err := f.catalog.DB(1).Count(nil)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Empty(t, f.exchange(t, setBulk(frame.NoReply, rec(1, "b", "2"))))
}

// scripts is a script in Go.
type scripts func(heed db.Heed, owed *db.Pending) (status int)

// Call implements binproto.Scripts.
func (f scripts) Call(heed db.Heed, owed *db.Pending, _ string, _ iter.Seq2[[]byte, []byte], out func(key, value []byte)) int {
	status := f(heed, owed)
	out([]byte("told"), []byte("secret"))
	return status
}

// A script has the rights of its caller of the moment: what it does and tells after they have gone
// is refused.
func TestRightsTakenAwayWhileAScriptRuns(t *testing.T) {
	f := newFixture(t, db.Options{}, ":")
	path := filepath.Join(t.TempDir(), "access")
	rule := func(line string) { require.NoError(t, os.WriteFile(path, []byte(line), 0o600)) }
	rule("allow anyone read,write")
	g, err := access.Open(access.Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	f.limits.Access = g
	d := f.catalog.DB(0)
	var stored, heeded error
	f.handler = binproto.NewHandler(binproto.Options{Catalog: f.catalog.View, Logger: bareLogger(&f.log),
		Scripts: scripts(func(heed db.Heed, owed *db.Pending) int {
			require.NoError(t, d.Set(owed, []byte("before"), []byte("x"), record.Never))
			rule("allow anyone read")
			g.Reload()
			require.Error(t, d.Set(owed, []byte("after"), []byte("x"), record.Never))
			stored, heeded = d.Set(owed, []byte("after"), []byte("x"), record.Never), heed()
			return 0
		})})
	require.Equal(t, []byte{byte(frame.Error)}, f.exchange(t, frame.AppendScript(nil, frame.Script{Name: []byte("f")})))
	require.ErrorContains(t, stored, "access denied")
	require.ErrorContains(t, heeded, "access denied")
	n, err := d.Count(nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

// A bulk may wait for somebody's transaction: what it stores then needs the right of then.
func TestRightsTakenAwayWhileABulkWaits(t *testing.T) {
	f := newFixture(t, db.Options{}, "%")
	path := filepath.Join(t.TempDir(), "access")
	require.NoError(t, os.WriteFile(path, []byte("allow anyone write"), 0o600))
	g, err := access.Open(access.Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	f.limits.Access = g
	d := f.catalog.DB(0)
	tx, err := d.Begin(nil, false)
	require.NoError(t, err)
	done := make(chan []byte)
	go func() { done <- f.exchange(t, setBulk(0, rec(0, "a", "1"))) }()
	require.NoError(t, os.WriteFile(path, []byte("allow anyone read"), 0o600))
	g.Reload()
	require.NoError(t, tx.Abort())
	require.Equal(t, []byte{byte(frame.Error)}, <-done)
	n, err := d.Count(nil)
	require.NoError(t, err)
	require.Zero(t, n)
}
