package quota

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
)

// BenchmarkApply takes from a quota in a database file with a log. The socket is not in it, and
// nobody waits for the log.
func BenchmarkApply(b *testing.B) {
	dir := b.TempDir()
	c, err := db.Open([]string{filepath.Join(dir, "services.kct")}, db.Options{LogDir: filepath.Join(dir, "ulog"), SID: 1})
	require.NoError(b, err)
	defer c.Close()
	s, err := New(Options{DB: c.DB(0), Limit: 1 << 40})
	require.NoError(b, err)
	defer s.Close()
	var owed db.Pending
	var body []byte
	target := []byte("/apply?amt=1")
	b.ReportAllocs()
	for b.Loop() {
		body, _ = s.answer(body[:0], target, &owed)
		owed.Forget()
	}
}
