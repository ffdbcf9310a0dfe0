package ulog

import (
	"fmt"

	"gotycoon/internal/vfs"
)

// # Early writing
//
// The log is synced once in a second, at each checkpoint and at the end of a segment. Clients that
// push as fast as they can write 100 MB in a second. If the disk began with them at the sync, it
// would be busy with the log alone for a tenth of a second, and the end of a segment, for which
// everybody waits, would stand behind that. And a file system with a journal, such as ext4, makes a
// write wait while it commits: the leader's next write, and with it every client, would wait until
// the disk has come to the commit.
//
// The rule: whenever earlySize bytes have been written, the flusher has the disk begin with them,
// and waits for nothing. A sync then finds little left to do.
//
// Example: a million records are updated at random, 700,000 in a second, in bulks of 100 over four
// connections. Without early writing, syncs of the log took up to 57 ms, and single writes of the
// leader 8 and 17 ms beside them. With it, no wait of 9 ms or more had a call about the log beside
// it that took a millisecond (BENCHMARKS.md, "Long waits of writers").
//
// This changes nothing about what is safe: only a sync says so. With SyncEach each group is synced,
// and there is nothing to begin with.
//
// Rejected: to sync more often. Each sync makes the file system commit its journal, which is what
// writes wait for.

const earlySize = 4 << 20

// beginEarly asks the flusher to have the disk begin, if enough was written since the last time.
// The log ends at the position at. The caller is the leader.
func (w *writer) beginEarly(at tail) {
	if at.seg != w.early.seg {
		w.early = tail{seg: at.seg}
	}
	if w.log.opts.SyncEach || at.off-w.early.off < earlySize {
		return
	}
	w.early = at
	select {
	case w.log.flush.filled <- struct{}{}:
	default: // the flusher is asked already
	}
}

// begin has the disk begin with what was written to the newest segment. It holds syncMu, so that
// the segment stays open.
func (w *writer) begin() error {
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	f, ok := w.f.(vfs.Starter)
	if !ok {
		return nil
	}
	if err := f.StartSync(); err != nil {
		return w.log.fail(fmt.Errorf("begin to sync update log: %w", err))
	}
	return nil
}
