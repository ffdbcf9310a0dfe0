package binproto_test

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/binproto"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
)

// TestMeasuredRequests: what a slow bulk was is in the log, and requests without an end have no
// time.
func TestMeasuredRequests(t *testing.T) {
	catalog, err := db.Open([]string{"%"}, db.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, catalog.Close()) }()
	var log strings.Builder
	m := metrics.New(metrics.Options{Slow: time.Nanosecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	meters := binproto.NewMeters()
	h := binproto.NewHandler(binproto.Options{Catalog: catalog.View, Meters: meters})

	request := frame.AppendHeader(nil, frame.Header{Magic: frame.SetBulk, RNum: 2})
	for _, key := range []string{"japan", "china"} {
		request = frame.AppendRecord(request, frame.Record{XT: int64(record.Never), Key: []byte(key), Value: []byte("capital")})
	}
	request = frame.AppendCopyRequest(request, frame.CopyRequest{})
	request = append(request, byte(frame.Replication))
	server, client := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer server.Close()
		c := netio.New(server, netio.NewPool(), netio.Options{Timeout: time.Minute})
		defer c.Close()
		c.Meter = m.NewRecorder("peer")
		for c.WaitByte() == nil && h.ServeOne(c, "peer") {
		}
	}()
	go func() { _, _ = client.Write(request) }()
	for room := make([]byte, 4096); meters.Copies.Done.Load() == 0; {
		_, err := client.Read(room)
		require.NoError(t, err)
	}
	require.NoError(t, client.Close())
	<-done
	timed, counted := map[string]uint64{}, map[string]uint64{}
	for _, c := range meters.Binary.Commands() {
		timed[c.Name], counted[c.Name] = c.Timed, c.Count
	}
	require.EqualValues(t, 1, timed["set_bulk"])
	require.EqualValues(t, 1, counted["copy"])
	require.Zero(t, timed["copy"])
	require.NotZero(t, meters.Copies.Last.Load())
	require.Contains(t, log.String(), `binary set_bulk db=% key=\"japan\" in=`)
}
