package ulog

import (
	"log/slog"
	"os"
	"time"

	"gotycoon/internal/metrics"
	"gotycoon/internal/vfs"
)

const (
	readOnly  = os.O_RDONLY
	readWrite = os.O_RDWR
	create    = os.O_RDWR | os.O_CREATE

	filePerm = 0o644
	dirPerm  = 0o755
)

const (
	defaultLimit        = 256 << 20
	defaultAhead        = 16 << 20
	defaultSyncInterval = time.Second
)

// Options of a Log. The zero value is usable.
type Options struct {
	// Limit is the size in bytes from which on a segment is followed by the next one (-ulim). 0
	// means 256 MiB, below 0 means no limit. A segment exceeds the limit by up to one group.
	Limit int64
	// Ahead is the size in bytes from which on WriteAhead writes a value before its update's turn.
	// 0 means 16 MiB.
	Ahead int
	// SyncEach makes Wait return after an fsync (-oas), not after the write.
	SyncEach bool
	// SyncInterval is how long written data may stay without fsync, and appended data unwritten
	// when nobody waits for it. Default 1 s.
	SyncInterval time.Duration
	// NoRepair makes a torn tail an error of Open (-onr). By default it is put aside and cut off.
	NoRepair bool
	// TryLock makes Prepare return vfs.ErrLocked at once when another process has the log open. By
	// default it waits for 10 seconds.
	TryLock bool
	// FS holds the log. Default vfs.OS.
	FS vfs.FS
	// Logger gets what Open repairs and what readers miss. nil is silent.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (o *Options) setDefaults() {
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	if o.Ahead <= 0 {
		o.Ahead = defaultAhead
	}
	if o.SyncInterval <= 0 {
		o.SyncInterval = defaultSyncInterval
	}
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Observer measures what a Log does. A nil Observer measures nothing and does not look at the
// clock.
type Observer struct {
	Fsyncs  *metrics.Histogram // nanoseconds
	Records *metrics.Histogram // of a group
	Bytes   *metrics.Histogram // of a group
}

// NewObserver returns an Observer that has seen nothing.
func NewObserver() *Observer {
	return &Observer{
		Fsyncs:  metrics.NewTimes(),
		Records: metrics.NewHistogram(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000),
		Bytes:   metrics.NewHistogram(1<<8, 1<<10, 1<<12, 1<<14, 1<<16, 1<<18, 1<<20, 1<<22, 1<<24),
	}
}

func (o *Observer) group(records, bytes int64) {
	o.Records.Observe(records)
	o.Bytes.Observe(bytes)
}

func (o *Observer) begin() (now time.Time) {
	if o != nil {
		now = time.Now()
	}
	return now
}

func (o *Observer) synced(begun time.Time) {
	if o != nil && !begun.IsZero() {
		o.Fsyncs.Observe(int64(time.Since(begun)))
	}
}
