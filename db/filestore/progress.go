package filestore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"gotycoon/internal/klog"
)

// progress tells the log how much is left to write while somebody waits for a stop or a sync. A nil
// *progress tells nobody.
type progress struct {
	path   string
	all    func() int64 // bytes that are not in the file, those of the present overlay included
	logger *slog.Logger
	told   time.Time
	every  time.Duration
}

func newProgress(path string, all func() int64, logger *slog.Logger) *progress {
	return &progress{path: path, all: all, logger: logger, told: time.Now(), every: time.Second}
}

// tell is told how many bytes of the present overlay are in the file.
func (p *progress) tell(written int64) {
	if p == nil || time.Since(p.told) < p.every {
		return
	}
	p.told = time.Now()
	left := max(0, p.all()-written)
	p.logger.Log(context.Background(), klog.LevelSystem, // who waits has perhaps asked for no more lines than these
		fmt.Sprintf("%d MiB of updates are left to write into %s", left>>20, p.path), slog.String("path", p.path))
}
