package httpapi_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/httpapi"
)

// A large body is stored from where it is, and the bytes in front of it are overwritten: the
// credentials, if Authorization is the last header. They still count when the rules change before
// the value is stored.
func TestCredentialsInFrontOfALargeBody(t *testing.T) {
	const size = 17 << 20
	dir := t.TempDir()
	path := filepath.Join(dir, "access")
	writeAccess(t, path, []string{"anna"}, "allow anna read,write")
	guard, err := access.Open(access.Options{Path: path})
	require.NoError(t, err)
	defer guard.Close()
	logs := filepath.Join(dir, "ulog")
	s := newServerWith(t, db.Options{LogDir: logs, SID: 1, LogLimit: 256 << 20}, httpapi.Options{}, filepath.Join(dir, "a.kct"))
	s.access = guard
	inside, leave := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = s.catalog.DB(0).Accept(nil, []byte("a"), func(_, _ []byte, _ int64, _ bool) record.Verdict {
			close(inside)
			<-leave
			return record.Verdict{}
		})
	}()
	<-inside
	c := s.dial(t)
	body := strings.Repeat("x", size)
	c.send(fmt.Sprintf("PUT /a HTTP/1.1\r\nContent-Length: %d\r\nAuthorization: Basic YW5uYTphbm5h\r\n\r\n%s", size, body))
	require.Eventually(t, func() bool {
		found, err := filepath.Glob(filepath.Join(logs, "value-*"))
		return err == nil && len(found) > 0
	}, time.Minute, time.Millisecond)
	writeAccess(t, path, []string{"anna"}, "allow anna read,write", "# changed")
	guard.Reload()
	close(leave)
	require.Equal(t, "201 Created", c.receive(false).status)
}
