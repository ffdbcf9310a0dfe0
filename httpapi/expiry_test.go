package httpapi_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/httpapi"
)

//go:embed testdata/expiry.jsonl
var expiry []byte

// expiryStep is a request at a given time, with the original server's answer. The clock of the
// original was set before each request.
type expiryStep struct {
	At     int64    `json:"at"` // nanoseconds since 1970
	Proc   string   `json:"proc"`
	In     string   `json:"in"`
	Status int      `json:"status"` // 0: not compared, because it depends on when expired records are collected
	Out    []string `json:"out"`    // sorted
}

// Records expire in the same second as at the original: at the edges of seconds, a nanosecond
// beside them, and also when expired records have been collected between two requests.
func TestLastSecond(t *testing.T) {
	for _, collect := range []bool{false, true} {
		t.Run(fmt.Sprintf("memory, collect=%t", collect), func(t *testing.T) { replayExpiry(t, "%", collect) })
		t.Run(fmt.Sprintf("file, collect=%t", collect), func(t *testing.T) { replayExpiry(t, t.TempDir()+"/a.kct", collect) })
	}
}

func replayExpiry(t *testing.T, expr string, collect bool) {
	var now atomic.Int64
	s := newServerWith(t, db.Options{Now: func() time.Time { return time.Unix(0, now.Load()) }}, httpapi.Options{}, expr)
	c := s.dial(t)
	for i, line := range bytes.Split(bytes.TrimSpace(expiry), []byte("\n")) {
		var step expiryStep
		require.NoError(t, json.Unmarshal(line, &step))
		now.Store(step.At)
		if collect {
			c.ok("vacuum")
		}
		r := c.do(post("/rpc/"+step.Proc, "text/tab-separated-values", step.In))
		if step.Status == 0 {
			continue
		}
		rows := strings.Split(strings.TrimSuffix(r.body, "\n"), "\n")
		slices.Sort(rows)
		require.Equal(t, itoa(step.Status), r.status[:3], "line %d: %s", i+1, line)
		require.Equal(t, strings.Join(step.Out, "\n"), strings.Join(rows, "\n"), "line %d: %s", i+1, line)
	}
}
