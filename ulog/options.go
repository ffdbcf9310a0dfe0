package ulog

import (
	"log/slog"
	"os"
	"time"

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
