package pg_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/pg"
)

// What ends a session may come behind its commit, in whatever language PostgreSQL says so, and
// whatever the reason is. Other errors have undone the transaction.
func TestWhatErrorsMean(t *testing.T) {
	for _, c := range []struct {
		severity, word, code string
		want                 engine.Kind
	}{
		{"ERROR", "FEHLER", "40001", engine.Undone},
		{"ERROR", "ERROR", "53100", engine.Full},
		{"ERROR", "ОШИБКА", "22023", engine.Refused},
		{"FATAL", "ВАЖНО", "57P01", engine.Unknown},
		{"FATAL", "FATAL", "57P01", engine.Unknown},
		{"PANIC", "PANIK", "53100", engine.Unknown},
	} {
		err := pg.Mean(&pgconn.PgError{SeverityUnlocalized: c.severity, Severity: c.word, Code: c.code})
		require.Equal(t, c.want, engine.KindOf(err), c)
	}
}
