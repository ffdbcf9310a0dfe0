package counter_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		serveForBenchmark()
		return
	}
	goleak.VerifyTestMain(m)
}
