package console_test

import (
	"testing"

	"go.uber.org/goleak"

	"gotycoon/db/engine/pg/pgtest"
)

// postgres is the server of this package.
var postgres pgtest.Shared

// withPostgres ends the PostgreSQL of the tests before anybody looks for goroutines that are left.
type withPostgres struct{ *testing.M }

func (m withPostgres) Run() int { return postgres.Main(m.M) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(withPostgres{m}) }
