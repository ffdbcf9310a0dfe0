package rescue_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/internal/rescue"
)

func TestAPanicEndsItsRequestOnly(t *testing.T) {
	var log bytes.Buffer
	err := rescue.Do(slog.New(slog.NewTextHandler(&log, nil)), "a request", func() {
		var p *int
		*p = 1
	})
	e, ok := errors.AsType[*rescue.Error](err)
	require.True(t, ok, err)
	require.Contains(t, e.Error(), "nil pointer")
	require.Contains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "a request")
	require.Contains(t, log.String(), "rescue_test.go", "the stack")
	require.NoError(t, rescue.Do(slog.New(slog.DiscardHandler), "", func() {}))
}

// A panic that is meant is passed on, and is nobody's mistake.
func TestAPanicThatIsMeantIsPassedOn(t *testing.T) {
	var log bytes.Buffer
	meant := errors.New("the reply ends here")
	do := func(value any) error {
		return rescue.Do(slog.New(slog.NewTextHandler(&log, nil)), "a request", func() { panic(value) }, meant)
	}
	require.PanicsWithValue(t, meant, func() { _ = do(meant) })
	require.Empty(t, log.String())
	require.Error(t, do(errors.New("the reply ends here")), "another error with the same words")
	require.Error(t, do([]int{1}), "which cannot be compared")
	require.Contains(t, log.String(), "level=ERROR")
}

// What panics while a database is locked must not leave it locked.
func TestAPanicInTheEngineEndsTheProcess(t *testing.T) {
	if os.Getenv("RESCUE_CHILD") != "" {
		_ = rescue.Do(slog.New(slog.NewTextHandler(os.Stderr, nil)), "a request", func() {
			c, err := db.Open([]string{"*"}, db.Options{})
			require.NoError(t, err)
			_, _ = c.DB(0).Accept(nil, []byte("key"), func(_, _ []byte, _ int64, _ bool) record.Verdict { panic("in the middle") })
		})
		os.Exit(0)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestAPanicInTheEngineEndsTheProcess$")
	child.Env = append(os.Environ(), "RESCUE_CHILD=1")
	text, err := child.CombinedOutput()
	e, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, "%v\n%s", err, text)
	require.Equal(t, 2, e.ExitCode(), string(text))
	require.Contains(t, string(text), "the process ends")
	require.Contains(t, string(text), "in the middle")
}
