package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/pg/pgtest"
	"gotycoon/server"
)

var engine pgtest.Shared

// The client works on databases in an engine that servers share.
func TestOnAnEngine(t *testing.T) {
	url := engine.URL(t)
	_, err := pg.Init(t.Context(), url, pg.Setup{SID: 1, Log: true, Databases: []string{"hash", "tree"}})
	require.NoError(t, err)
	cfg := server.DefaultConfig()
	cfg.Databases, cfg.Plugins.Database = nil, url
	s := startServer(cfg)
	files := addr
	addr = s.addr
	defer func() {
		addr = files
		require.Zero(t, s.stop())
	}()
	for _, test := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"many goroutines", TestManyGoroutines}, {"bulk", TestBulk}, {"match", TestMatch}, {"binary bulk", TestBinaryBulk},
		{"refused binary request", TestRefusedBinaryRequest}, {"signals", TestSignals}, {"all", TestAll}, {"iterations that are left", TestIterationsThatAreLeft},
		{"cursor after one", TestCursorAfterAnIterationThatWasLeft}, {"iterations that fail", TestIterationsThatFail},
		{"backward", TestBackward}, {"cursor moves and changes", TestCursorMovesAndChanges}, {"cursor tells sizes", TestCursorTellsSizes},
		{"zero is never", TestZeroIsNever}, {"touch", TestTouchAndTTL}, {"set and get", TestSetAndGet},
		{"add replace append remove", TestAddReplaceAppendRemove}, {"errors", TestErrorsSayWhatTheServerSaid}, {"expiration", TestExpiration},
		{"increment", TestIncrement}, {"cas", TestCAS}, {"large value", TestLargeValue},
	} {
		t.Run(test.name, test.run)
	}
}
